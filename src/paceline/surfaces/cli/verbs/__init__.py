"""The verbs; each file has a click command named ``command`` and imports what it needs when it runs."""
