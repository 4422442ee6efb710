"""What was tried, or could be: proposals, searches, experiments, and runs of one model side by side.

Begin with `proposals.Proposal`: a change of a job file with its predicted gain, the basis of that and its
risk. `tunings` is a search with its trials, `experiments` the comparison of variants; both are saved after
each run. `trained_models` says which runs train the same model. How they are carried out is not known here:
see `services.studying`.
"""
