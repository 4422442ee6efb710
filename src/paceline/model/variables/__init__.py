"""The variables of a model, and which parameter server holds which part of them.

Begin with `variables.Variable`, then `variable_plans.Plan`: how variables are cut into shards, and on which
server each shard is. `row_layouts` says where each row is stored. `script_plans` plans for scripts that do
not use the training library; `cures` are the changes that can be made in such scripts. `consistencies` and
`schedules` are other parts of the ``training:`` block of a job file. No TensorFlow here: see `training`.
"""
