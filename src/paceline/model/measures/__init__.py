"""What was measured of a job: samples of its replicas, and what follows from them by arithmetic alone.

Begin with `samples`: what an agent writes each second, and what trainers report. `snapshots` joins them
into how a job does at one moment; `recordings.Recording` is all that is known of a job, the one value that
rules, models and reports take. `rates` and `intervals` say over which time a mean is taken. What was not
measured is None, never 0. Why a figure is as it is does not belong here: see `diagnosing`.
"""
