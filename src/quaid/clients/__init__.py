"""Client programs that use Quaid, and their configuration files."""
