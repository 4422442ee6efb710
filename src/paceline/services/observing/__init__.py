"""How a job does and why, from its store: nothing here changes a job.

Begin with `recordings`: all that is known of a job, as one value. `diagnosis_runs` applies the rules to the
latest part of it, `look_cache` shares the result among many readers, and `finding_debounce` says which
finding appeared or is over. `snapshots`, `summaries`, `time_series` and `job_summaries` are what tables,
pages and lists show. All of it takes any `LifeCycle`, so it does not know where a job runs.
"""
