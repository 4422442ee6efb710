"""Jobs of a Kubernetes cluster, seen from a client or a server.

A job is a custom resource, and the operator acts on it. Start reading at `jobs.ClusterJobs`, the life cycle:
it writes specs and `annotations`, and reads `records`, the form in which the operator writes a job's state
into the resource's status. `runs` names the jobs in a store; `collectors` and `measurements` fetch what
agents in pods have measured. This package does not act on pods, which is the operator's part
(`services.operators`), and it does not know the jobs of this machine.
"""
