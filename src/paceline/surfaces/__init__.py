"""The interfaces for users and programs: thin layers over the services.

Begin with `composition`, which puts home, store, cluster and jobs together. `cli.verbs` has a file for each
verb, `api` is the Python API, and `web.applications` builds the server. `views`, `charts` and `reports`
show what services return. No inner package knows this one, and nothing here imports TensorFlow.
"""
