"""Rules for job files: each module has the rules on one subject and lists them in ``RULES``."""
