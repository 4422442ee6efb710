"""What is wrong with the progress of training: one rule a file."""
