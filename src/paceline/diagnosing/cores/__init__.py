"""Rules about the cores of replicas, one rule per file."""
