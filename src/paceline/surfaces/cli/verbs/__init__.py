"""The verbs; each file has a click command of its own name and imports what it needs when it runs."""
