"""The server that agents reach over the Model Context Protocol."""
