"""Changes in the text of a job file, which leave everything else as the user wrote it.

Begin with `edits.edited`: it makes the changes, parses the result and checks that it says what was asked for.
`block_edits` and `flow_edits` make changes in the two styles of YAML. `assignments` reads changes as users
type them: ``ps.replicas=4``.
"""
