"""Conversion of Kubeflow's TFJobs to job files.

Begin with `tfjob_files`: it makes a job file and the list of what the job file cannot express.
`tfjob_readings` removes from a TFJob what it understands; the remainder is lost. `tfjob_shapes` defines what
is read at all.
"""
