"""Rules about the memory of replicas, one rule per file."""
