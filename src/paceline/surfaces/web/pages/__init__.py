"""The pages for people: each a route that answers with HTML, its templates and its texts."""
