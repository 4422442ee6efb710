"""What is wrong with the reading of examples: one rule a file."""
