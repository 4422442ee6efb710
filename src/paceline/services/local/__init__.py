"""Jobs of this machine: processes, cgroups and namespaces of one host, with one supervisor for each job.

Begin with `jobs.Jobs`, the life cycle: it leaves requests in the store. `supervisors` starts and finds the
process that takes them, and `supervisions` is what that process does. `spec_changes` and `resizes` change a
job that runs; `run_registry` knows the names, folders and places of all runs. Nothing here knows
Kubernetes.
"""
