"""Jobs as users describe them, their runs and phases, and the nodes that they run on.

Begin with `job_specs.JobSpec`, a job file as a value, then `runs.Run`, a job that was submitted, and
`statuses`, the phases of jobs and replicas. `adjustments` are limits that replicas have for a limited time;
`placements`, `nodes` and `quotas` say where replicas may run. Nothing here is measured: see `measures`.
"""
