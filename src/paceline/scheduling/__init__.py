"""Whether a whole job fits on a cluster as it is, where, and what blocks it: no I/O, no clock."""
