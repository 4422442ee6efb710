"""Traces of two steps now and then, and the traffic of variables.

Begin with `traces.Tracer`: it asks TensorFlow to trace a step and writes the result as a file in a thread.
`trace_schedules` says when. `traffics` counts rows, because the size of a variable says nothing of its
traffic. What a trace means is not known here: see `paceline.tracing`.
"""
