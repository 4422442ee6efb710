"""Rules about the optimizer's cost to parameter servers, one rule per file."""
