"""What binds a running job, by experiment: what a probe cuts next, and what cuts show; no I/O, no clock."""
