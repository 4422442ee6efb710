"""Readers of what agents, cAdvisor, DCGM and TensorFlow write: samples, step reports, events and traces.

Begin with `spools.read`, which reads what an agent wrote on this machine; `agents` reads the same from
pods. `cadvisors` and `gpus` read what was measured of pods from outside. `traces.read` reads traces.
Nothing here knows `engines` or `stores`: a cluster is reached through `expositions.ApiServer`, and callers
store readings.
"""
