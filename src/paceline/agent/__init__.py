"""Runs inside each replica: starts its command, samples it, says why it ended. Imports no Paceline."""
