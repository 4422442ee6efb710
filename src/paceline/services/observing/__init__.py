"""How a job does and why, read from its store: nothing here changes a job.

Begin with `recordings`: everything known of a job, as one value. `diagnosis_runs` applies the rules to the
latest part of it, `look_cache` shares the result among many readers, and `finding_debounce` says which
findings appeared or are over. `snapshots`, `time_series` and `diagnosis_summaries` provide the
content of tables, pages and lists. All modules accept any `LifeCycle`, so they do not know where a job runs.
"""
