"""Whether a whole job fits on a cluster as it is, where, and what blocks it: no I/O, no clock.

Begin with `fits.fit`, which answers for one job. `queues.admit` chooses which waiting jobs may start.
`growths.places` finds room for more workers of a running job. All three see nodes in groups
(`node_groups.NodeGroups`), on which admitted jobs take room. Nothing here knows `rendering` or `engines`:
nodes and quotas are values of `model`.
"""
