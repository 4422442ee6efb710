"""The API: one file for each kind of thing that is asked about."""
