"""What would make a job faster: predicted from measurements, or tried.

Begin with `proposals`: what could be changed, each with its predicted gain. `tunings` tries proposals in
`trials` of their own, `live_changes` and `turns` in the job that runs; `experiments` compares variants.
`probes` finds by experiment which part binds, and `autoscales` moves cores by that. `what_ifs`,
`predictions` and `simulations` ask the model and change nothing. All of it takes any `LifeCycle`, so it
does not know where a job runs.
"""
