"""Studies of job files: proposals, searches, experiments, and runs of one model side by side.

Begin with `proposals.Proposal`: a change of a job file with its predicted gain, the basis of the prediction,
and its risk. `tunings` has a search with its trials, `experiments` the comparison of variants; both are saved
after each run. `trained_models` says which runs train the same model. How studies are carried out is not
known here: see `services.studying`.
"""
