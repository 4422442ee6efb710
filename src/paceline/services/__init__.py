"""Operations on jobs, shared by every surface: they combine specs, engines and stores.

Begin with `life_cycles`: the operations that every job has, wherever it runs. `local` implements them on this
machine, `cluster` on a Kubernetes cluster. `observing` reports how a job does and why; `studying` tries out
what would make it faster. `operators` is the process that drives the jobs of a cluster.

Imports go one way: `operators` > `local`, `cluster` > `studying` > `observing` > the modules of this package.
Nothing here knows how an answer is displayed: `surfaces` does that.
"""
