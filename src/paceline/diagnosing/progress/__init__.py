"""Rules about the progress of training, one rule per file."""
