"""Rules about workers and the chief, one rule per file."""
