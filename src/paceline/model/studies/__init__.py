"""Studies of job files: proposals, searches, experiments, and runs of one model side by side.

Begin with `proposals.Proposal`: a change of a job file with its predicted gain, the basis of the prediction,
and its risk. `studies.Study` is what a search with its trials (`tunings`) and a comparison of variants
(`experiments`) have in common. `trained_models` says which runs train the same model. How studies are carried
out is not known here: see `services.studying`.
"""
