"""Runs inside each replica: starts its command, samples it, records why it ended.

The package imports no other Paceline code. What comes beside the replica is `agent.py` and
`paceline_agent`; `bring`, `fetch` and `unpacking` run before it.
"""
