"""What binds a job that runs, by experiment: what to cut next, and what the cuts say; no I/O, no clock."""
