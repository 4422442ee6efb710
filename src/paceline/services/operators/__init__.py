"""The operator: one process that drives all jobs of a Kubernetes cluster.

It does for each job what a supervisor does on one machine. Begin with `operators.Operator`, the loop: it
follows the cluster and decides when to look at which job. `reconcilers` looks at one job and asks `control`
what to do; `executions` does it with pods. `room_requests` has the jobs that wait for room. `rounds` reads
what agents have measured, and `autoscaled_jobs` moves cores. An operator can end at any moment: everything it
knows is in the status of resources (`cluster.records`), so another one continues from there.
"""
