"""Makers of faults by what they are about: of a cause, mild to gross, for a healthy job."""
