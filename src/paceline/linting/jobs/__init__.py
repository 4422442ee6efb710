"""Rules for job files: each module holds the rules of one subject and lists them in ``RULES``."""
