"""The command line: one file per verb in ``verbs``, loaded when the verb is used.

``paceline --help`` and shell completion come from the table in ``catalogue`` and load none of the
libraries that the verbs need.
"""
