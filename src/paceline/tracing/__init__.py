"""From what TensorFlow says of steps that it traced to the traces of ``model.traces.traced_steps``: pure.

Used by the training library in the trainer, and by the host for what was traced in scripts of others.
"""
