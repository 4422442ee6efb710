"""Kubeflow's TFJobs, read as job files.

Begin with `tfjob_files`: a job file and the list of what it could not say. `tfjob_readings` takes a TFJob
apart, so that what is left over in the end is what is lost; `tfjob_shapes` says what is read at all.
"""
