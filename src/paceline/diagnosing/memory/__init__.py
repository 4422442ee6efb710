"""What is wrong with the memory of replicas: one rule a file."""
