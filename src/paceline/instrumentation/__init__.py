"""What is put in front of a user's training script, so that it is seen without a line of it changed.

This folder is not imported by the platform: the agent puts it first on ``PYTHONPATH`` of the command, and the
Python there imports ``sitecustomize`` before the script. Everything below is standard library, can be parsed
by Python 2.7 and runs on 3.5 and later.
"""
