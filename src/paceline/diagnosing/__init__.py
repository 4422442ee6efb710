"""Diagnosis of jobs: pure rules over recordings say why a job does not run, and why it is slow.

Begin with `diagnoses.diagnose`, which applies all rules to one job. A rule gets a `cases.Case`: a recording
with what is worked out of it once. A rule is a function that `rules.rule` decorates. The subpackages have the
rules, by what they are about, and `catalogues.RULES` lists them. Rules know nothing of stores, engines,
services and surfaces.
"""
