"""Where jobs run: on this machine, or on a Kubernetes cluster.

Begin with `engines.Engine`: what a supervisor needs of the place. `local.engine.LocalEngine` implements it
with processes of this machine. `kubernetes.clusters.Cluster` is what the operator needs of a cluster.
Nothing here knows `services`, `stores` or `sources`: engines do what they are told and report it.
"""
