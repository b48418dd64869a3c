"""Programs that use Quaid, and their settings."""
