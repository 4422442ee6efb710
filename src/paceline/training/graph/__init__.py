"""A trainer's graph: what a step pulls from the parameter servers, computes, and pushes.

Begin with `graphs`: it joins the model's forward part with lookups, gradients and updates. `lookups`,
`exchanges` and `combiners` are the way of a table's rows to the trainer and back; `optimizers` and
`updates` run on the servers. `rounds`, `clocks` and `step_policies` say how far trainers may be apart.
Where a variable is does not belong here: see `training.parameters` and `model.variables`.
"""
