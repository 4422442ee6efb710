"""Rules about the reading of examples, one rule per file."""
