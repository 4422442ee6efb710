"""From TensorFlow's data about traced steps to the traces of ``model.traces.traced_steps``: pure.

The training library uses it in the trainer; the host uses it for steps traced in other scripts.
"""
