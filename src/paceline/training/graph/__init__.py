"""A trainer's graph: what a step pulls from the parameter servers, computes, and pushes.

Begin with `graphs`: it joins the model's forward part with lookups, gradients and updates. `lookups`,
`exchanges` and `combiners` bring a table's rows to the trainer and their gradients back; `optimizers` and
`updates` run on the servers. `rounds`, `clocks` and `step_policies` limit how far trainers may be apart. The
placement of variables does not belong here: see `training.parameters` and `model.variables`.
"""
