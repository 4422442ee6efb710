"""Code that runs in a user's training process, so that its steps are seen without changing the script.

The platform does not import this folder: the agent puts it first on the command's ``PYTHONPATH``, and the
Python there imports ``sitecustomize`` before the script. All code below uses only the standard library, can
be parsed by Python 2.7 and runs on 3.5 and later.
"""
