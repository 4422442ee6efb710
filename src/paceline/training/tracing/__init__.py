"""Traces of a few steps at regular times, and the traffic of variables.

Begin with `traces.Tracer`: it asks TensorFlow to trace a step, and a thread writes the result to a file.
`trace_schedules` says when to trace. `traffics` counts rows, because the size of a variable says nothing
about its traffic. This package does not interpret a trace: see `paceline.tracing`.
"""
