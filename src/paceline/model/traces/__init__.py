"""Traces: what a few steps moved and computed, by variable and parameter server.

Begin with `traced_steps.Trace`, the trace of one trainer. `trace_tables` is its form on disk;
`trace_summaries` joins the traces of one moment into means for a step. How TensorFlow's own data becomes a
trace is not known here: see `tracing`.
"""
