"""What is wrong with the cores of replicas: one rule a file."""
