"""Job files: from YAML to `JobSpec` and back, with every error at its line and column.

``documents`` reads YAML and remembers places, ``shapes`` and ``fields`` say what a job file may hold,
``conversions`` makes the `JobSpec`, ``files`` joins these. ``schemas``, ``templates`` and ``dumping`` go the
other way.
"""

from paceline.specs.files import JobFile, load_job, parse_job
from paceline.specs.problems import JobFileError, Problem

__all__ = ["JobFile", "JobFileError", "Problem", "load_job", "parse_job"]
