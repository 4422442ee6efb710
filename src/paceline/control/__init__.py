"""The life of a job as a pure state machine: no I/O, no clock.

``machines.advance(state, event)`` returns the next state and the commands that bring the processes of the job
in line with it. The local supervisor and the Kubernetes operator only execute commands and report events.
"""
