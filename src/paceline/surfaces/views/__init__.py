"""The output of the command line: pure functions from values to renderables of rich, one view per file."""
