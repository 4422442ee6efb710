"""What the optimizer costs parameter servers: one rule a file."""
