"""Training scripts that run from a job file."""
