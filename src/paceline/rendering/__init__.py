"""Rendering of a job into plans, agent configs and Kubernetes objects, without side effects.

Begin with `manifests.rendered`: it returns all objects of a job, and `pods.pod` makes the pod of one
replica. On a single machine, `host_plans.plan` chooses hosts and cores instead. `environments.agent_config`
is what the agent of a replica gets in either place. Nothing here knows `control`, which decides when
replicas start, or `engines`, which start them.
"""
