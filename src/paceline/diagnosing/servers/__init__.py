"""Rules about parameter servers, one rule per file."""
