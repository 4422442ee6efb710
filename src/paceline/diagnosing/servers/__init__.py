"""What is wrong with parameter servers: one rule a file."""
