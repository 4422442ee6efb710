"""From causes and a model to proposals, and from trials of these to a better job file; no I/O, no clock.

Begin with `searches.chosen`, which picks the proposals to try next. Proposals come from `moves`,
`cure_moves` and `candidates`. `judgements.judge` says whether a trial is better than the best one before
it. Nothing here runs a trial or knows a job file's text: `services.studying` makes the trials, `specs` has
the text.
"""
