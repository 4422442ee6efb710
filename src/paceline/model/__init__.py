"""The values that all other packages exchange: frozen, without I/O, clock or randomness.

Begin with `jobs.job_specs`: what a user asks for. `jobs` also has the runs of a job and their phases.
`measures` has what was measured of a run, `traces` what its steps moved. `variables` describes the model that
a job trains, and how it is laid over parameter servers. `explanations` has what was found, `studies` what was
tried. The modules directly in this package serve all of these: names of replicas, quantities, rates of
growth. Nothing here knows how a value was made, stored or shown.
"""
