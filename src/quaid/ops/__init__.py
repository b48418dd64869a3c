"""Which verbs exist and who may call them. Every surface is built by walking this register."""
