"""What is wrong with the network: one rule a file."""
