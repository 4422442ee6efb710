"""YAML text that users write: every value has its place in the text, and every error is shown there.

Begin with `documents`: plain data that remember line and column. `problems` shows an error with its line and
a caret. `syntax_trees` knows the exact offsets of each part of a text. `writings` and `plain_texts` write
values so that any YAML reader reads them back unchanged. Nothing in this package knows what a job is.
"""
