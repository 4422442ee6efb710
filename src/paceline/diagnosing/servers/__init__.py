"""Rules about parameter servers, one rule per file, and the facts that several rules need.

Four files are no rules. `hot_loads` finds the server with a load far above the mean. `blames` finds the shard
that makes it hot. `saturations` says whether all servers are at a limit. `partitionings` has the changes that
cut or place variables differently.
"""
