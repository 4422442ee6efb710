"""Runs inside each replica: starts its command, samples it, says why it ended. Imports no Paceline."""

FILES = ("agent.py", "profiler.py", "unseen.py", "oddities.py", "passing.py")
"""The agent, and what it loads from beside itself."""
