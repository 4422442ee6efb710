"""From causes and a model to proposals, from trials of these to a better job file; pure."""
