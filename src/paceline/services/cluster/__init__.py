"""Jobs of a Kubernetes cluster, seen from a client or a server.

A job is a resource, and its operator does the rest. Begin with `jobs.ClusterJobs`, the life cycle: it
writes specs and `annotations`, and reads `records`, which are how an operator writes a job's state into a
status. `runs` names the jobs in a store; `collectors` and `measurements` bring what agents in pods have
measured. Nothing here acts on pods, which is the operator's part (`services.operators`), and nothing here
knows the jobs of this machine.
"""
