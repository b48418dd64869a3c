"""Facts with their time and source, and where they contradict each other."""
