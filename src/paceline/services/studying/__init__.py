"""Finds what would make a job faster, by prediction from measurements or by trial.

Start reading at `proposals`: possible changes, each with its predicted gain. `tunings` tries proposals in
separate `trials`, `live_changes` and `turns` in the running job; `experiments` compares variants. `probes`
finds by experiment which part limits the speed, and `autoscales` moves cores accordingly. `what_ifs`,
`predictions` and `simulations` only query the model. Every module works with any `LifeCycle`, so none of them
knows where a job runs.
"""
