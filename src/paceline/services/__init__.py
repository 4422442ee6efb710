"""Operations on jobs, the same for every surface: they join specs, engines and stores.

Begin with `life_cycles`: what can be done with a job, wherever it runs. `local` does it on this machine,
`cluster` on a Kubernetes cluster. `observing` says how a job does and why; `studying` tries what would make
it faster. `operators` is the process that drives the jobs of a cluster.

Imports go one way: `operators` > `local`, `cluster` > `studying` > `observing` > the modules of this
package. Nothing here knows how an answer is shown: that belongs to `surfaces`.
"""
