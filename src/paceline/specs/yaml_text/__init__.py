"""YAML as text that users wrote: every value with its place, and every fault shown there.

Begin with `documents`: plain data that remembers line and column. `problems` shows a fault with its line
and a caret. `syntax_trees` says where each part of a text is, to the character; `writings` and
`plain_texts` write values so that any reader of YAML reads them back. Nothing here knows what a job is.
"""
