"""The variables of a model, and which parameter server holds which part of them.

Begin with `variables.Variable`, then `variable_plans.Plan`: how variables are cut into shards, and on which
server each is. `row_layouts` says where a row of a shard is. `script_plans` does the same for scripts that
do not use the training library; `cures` are the changes that such a script can be given. `consistencies`
and `schedules` are what else the ``training:`` block of a job file says. No TensorFlow here: see
`training`.
"""
