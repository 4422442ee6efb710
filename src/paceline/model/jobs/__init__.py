"""What a user asks for, and where it stands: jobs, their runs, and the nodes that they run on.

Begin with `job_specs.JobSpec`, a job file as a value, then `runs.Run`, a job that was submitted, and
`statuses`, the phases of jobs and replicas. `adjustments` are what replicas may take for a time;
`placements`, `nodes` and `quotas` say where they may be. Nothing here is measured: see `measures`.
"""
