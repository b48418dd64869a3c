"""The notebook: remember, recall, daily log, session prompt."""
