"""Jobs on this machine: processes, cgroups and namespaces of one host, with one supervisor per job.

Begin with `jobs.Jobs`, the life cycle: it leaves requests in the store. `supervisors` starts and finds the
process that takes them, and `supervisions` is what that process does. `spec_changes` and `resizes` change a
running job; `run_registry` knows the names, folders and places of all runs. Nothing here knows Kubernetes.
"""
