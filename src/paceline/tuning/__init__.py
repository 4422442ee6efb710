"""From causes and a model to proposals, and from trials of these to a better job file; no I/O, no clock."""
