"""Measurements of a job: samples of its replicas, and what follows from them by arithmetic alone.

Begin with `samples`: what an agent writes each second, and what trainers report. `snapshots` joins these into
the state of a job at one moment. `recordings.Recording` is all that is known of a job: the value that rules,
models and reports take. `rates` and `intervals` define over which time a mean is taken. Values that were not
measured are None, never 0. Why a figure is as it is does not belong here: see `diagnosing`.
"""
