"""What people see: pure functions from values to renderables of rich, one view a file."""
