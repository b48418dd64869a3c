"""Programs that use a memory: where each keeps its settings, and how Quaid is put into them and taken out."""
