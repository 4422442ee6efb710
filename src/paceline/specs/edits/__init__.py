"""Changes in the text of a job file: all else stays as the user wrote it.

Begin with `edits.edited`: it makes changes, reads the result and compares it with what was asked for.
`block_edits` and `flow_edits` do it in the two styles of YAML. `assignments` reads changes as users type
them: ``ps.replicas=4``.
"""
