"""The job file: what it may hold, what it means, and how it is written.

Begin with `shapes`, the sections as pydantic models, and `fields`, the types of single values. `files` reads
a text, `checks` describes the errors in it, and `conversions` makes the `JobSpec`. `dumping`, `templates` and
`schemas` go the other way; `custom_resources` is the same file as a Kubernetes resource. This package also
reads experiment files, saved plans and files of variables.
"""
