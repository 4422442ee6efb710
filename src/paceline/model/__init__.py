"""The values that everything else speaks in: frozen, without I/O, clock or randomness.

Begin with `jobs.job_specs`: what a user asks for. `jobs` also says what a run of it is and where it stands;
`measures` is what was measured of it, `traces` what its steps moved. `variables` is the model that it
trains, laid over parameter servers. `explanations` is what was found, `studies` what was tried. The modules
of this package are what all of these need: names of replicas, quantities, rates of growth. Nothing here
knows how a value was made, stored or shown.
"""
