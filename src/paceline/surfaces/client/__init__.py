"""The client of a server (`surfaces.web`): its jobs, as those of a home or of a namespace are used.

``connections`` sends requests, ``refusals`` makes errors of what is refused, ``readings`` makes values of
documents; `server_jobs.ServerJobs` is what the verbs and the Python API are given.
"""
