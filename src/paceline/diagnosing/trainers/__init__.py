"""What is wrong with workers and the chief: one rule a file."""
