"""Job files: from YAML to `JobSpec` and back, with every error at its line and column.

``documents`` reads YAML and remembers places, ``shapes`` and ``fields`` define what a job file may hold,
``conversions`` makes the `JobSpec`, and ``files`` connects these steps. ``schemas``, ``templates`` and
``dumping`` go the other way.
"""

from paceline.specs.job_file.dumping import dump_job, source_of
from paceline.specs.job_file.files import JobFile, load_job, parse_job
from paceline.specs.job_file.plan_files import load_plain, load_plan, plain_text
from paceline.specs.job_file.schemas import json_schema
from paceline.specs.job_file.templates import TEMPLATES, template
from paceline.specs.job_file.variable_files import load_variables
from paceline.specs.yaml_text.problems import DocumentError, Problem

__all__ = [
    "TEMPLATES",
    "DocumentError",
    "JobFile",
    "Problem",
    "dump_job",
    "json_schema",
    "load_job",
    "load_plain",
    "load_plan",
    "load_variables",
    "parse_job",
    "plain_text",
    "source_of",
    "template",
]
