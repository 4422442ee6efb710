"""Reading of job files: the result is a `JobSpec`, or an error with everything that is wrong."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from paceline.model.explanations import findings
from paceline.model.jobs import job_specs
from paceline.specs.job_file import checks, conversions, shapes
from paceline.specs.yaml_text import documents, problems

_HINT = "`paceline init` writes a job file with every field explained; docs/job-file.md lists them all."


@dataclasses.dataclass(frozen=True)
class JobFile:
    """A job file that was read and checked.

    Attributes:
        spec: the job that it asks for.
        text: its text, as submitted.
        file: its name, as shown in positions.
        document: its data, with the place of each part.
    """

    spec: job_specs.JobSpec
    text: str
    file: str
    document: documents.Document = dataclasses.field(repr=False, compare=False)

    @property
    def path(self) -> pathlib.Path:
        """The path of the file; ``working_dir`` is relative to its folder."""
        return pathlib.Path(self.file)

    def position(self, path: documents.Path, *, key: bool = False) -> findings.TextPosition:
        """Return the position of a field, or of the nearest existing part above it.

        Args:
            path: keys and indices from the top, such as ``("spec", "roles", "ps", "cpu")``.
            key: return the position of the key instead of its value.
        """
        return self.document.position(path, key=key)


def load_job(path: str | os.PathLike[str]) -> JobFile:
    """Return the job file at a path.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: the file cannot be read, or is wrong; `problems.DocumentError` says where.
    """
    return parse_job(
        checks.read_bytes(path, "`paceline init` writes a job file to start from."), file=os.fspath(path)
    )


def parse_job(text: str | bytes, file: str = "job.yaml") -> JobFile:
    """Return the job that a text describes.

    Args:
        text: the YAML text, or the bytes of the file.
        file: name of the file, for positions.

    Raises:
        problems.DocumentError: the text has errors; the exception holds all of them.
    """
    with problems.hinted(_HINT):
        text = documents.decode(text, file)
        document = documents.read(text, file)
        section = checks.check(document, shapes.JobSection, "a job file", conversions.contradictions)
    return JobFile(conversions.job_spec(section, tuple(document.data["spec"]["roles"])), text, file, document)
