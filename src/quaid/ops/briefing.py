"""What shifted, what is due, what is open: a briefing from the memory itself."""
