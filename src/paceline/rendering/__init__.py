"""From a job to what each replica is given: pure and printable."""
