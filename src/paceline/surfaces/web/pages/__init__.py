"""The web pages: routes that answer with HTML, their templates and their texts."""
