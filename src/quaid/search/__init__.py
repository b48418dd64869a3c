"""How evidence for a question is found, ranked and cut. This room only reads."""
