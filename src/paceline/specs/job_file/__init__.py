"""The job file: what it may hold, what that means, and how it is written.

Begin with `shapes`, the sections as pydantic models, and `fields`, the types of single values. `files`
reads a text, `checks` puts into words what is wrong with it, and `conversions` makes the `JobSpec`.
`dumping`, `templates` and `schemas` go the other way; `custom_resources` is the same file as a resource of
Kubernetes. Experiment files, saved plans and files of variables are read here, too.
"""
