"""Models that a script can train."""
