"""Traces: what a few steps moved and did, by variable and parameter server.

Begin with `traced_steps.Trace`, the trace of one trainer. `trace_tables` is the form in which it is kept on
disk; `trace_summaries` joins the traces of one moment into means for a step. How TensorFlow's own data
becomes a trace is not known here: see `tracing`.
"""
