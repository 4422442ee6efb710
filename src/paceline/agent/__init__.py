"""Runs inside each replica: starts its command, samples it, records why it ended.

The package imports no other Paceline code.
"""

FILES = ("agent.py", "profiler.py", "unseen.py", "oddities.py", "passing.py")
"""The agent, and what it loads from beside itself."""
