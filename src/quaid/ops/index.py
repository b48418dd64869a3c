"""placeholder until generated"""
COMMANDS: dict[str, tuple[str, str]] = {}
TOOLS: dict[str, str] = {}
ALIASES: dict[str, dict[str, bool]] = {}
