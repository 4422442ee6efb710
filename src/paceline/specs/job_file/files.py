"""Job files: read, checked and turned into a `JobSpec`, or refused with everything that is wrong."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from paceline.model.explanations import findings
from paceline.model.jobs import job_specs
from paceline.specs.job_file import checks, conversions, shapes
from paceline.specs.yaml_text import documents


@dataclasses.dataclass(frozen=True)
class JobFile:
    """A job file that was read.

    Attributes:
        spec: what it asks for.
        text: its text, as submitted.
        file: its name, as positions show it.
        document: its data and where each part stands.
    """

    spec: job_specs.JobSpec
    text: str
    file: str
    document: documents.Document = dataclasses.field(repr=False, compare=False)

    @property
    def path(self) -> pathlib.Path:
        """Where the file is; ``working_dir`` counts from its folder."""
        return pathlib.Path(self.file)

    def position(self, path: documents.Path, *, key: bool = False) -> findings.TextPosition:
        """Return where a field such as ``("spec", "roles", "ps", "cpu")`` stands, or the nearest above it.

        Args:
            path: keys and indices from the top.
            key: the place of the key instead of that of its value.
        """
        return self.document.position(path, key=key)


def load_job(path: str | os.PathLike[str]) -> JobFile:
    """Return the job file at a path.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: it cannot be read as text; `problems.JobFileError` when it is no job.
    """
    return parse_job(
        checks.read_bytes(path, "`paceline init` writes a job file to start from."), file=os.fspath(path)
    )


def parse_job(text: str | bytes, file: str = "job.yaml") -> JobFile:
    """Return the job that a text describes.

    Args:
        text: the YAML, or the bytes of the file.
        file: its name, for positions.

    Raises:
        problems.JobFileError: what is wrong, everything at once.
    """
    text = documents.decode(text, file)
    document = documents.read(text, file)
    section = checks.check(document, shapes.JobSection, "a job file", conversions.contradictions)
    return JobFile(conversions.job_spec(section, tuple(document.data["spec"]["roles"])), text, file, document)
