"""Rules about the network, one rule per file."""
