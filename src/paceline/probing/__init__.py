"""What binds a running job, by experiment: what a probe cuts next, and what cuts show; no I/O, no clock.

Begin with `plans.following`, which returns the cuts that a probe may make next. `scopes` has the parts that
can be cut, and `estimates` turns cuts into elasticities. `balances.balance` moves cores by what a probe has
shown. Nothing here cuts or measures: `services.studying` does, with adjustments of `model`.
"""
