"""Changes of a job, shown as a diff of the text of its job file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.specs.edits import edits

#: The number of lines that name the files of a diff, and the start of the line "No newline at end of file".
_HEAD = 2
_NO_LINE_BREAK = "\\"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Diffs:
    """Shows changes of one job.

    Attributes:
        source: the job file as submitted; empty if there is none, as for a resource on a cluster.
        spec: the job's spec; None if it cannot be read.
    """

    source: str = ""
    spec: JobSpec | None = None

    @classmethod
    def of(cls, run: Run | None) -> Diffs:
        """Return the diffs for a run; None stands for a job with an invalid spec, which has no run."""
        return cls() if run is None else cls(source=run.source, spec=run.spec)

    def diff(self, changes: Sequence[FieldChange]) -> str | None:
        """Return the diff of the job file; None if nothing changes or the file cannot be edited."""
        if not changes or not self.source:
            return None
        try:
            return edits.diff(self.source, changes) or None
        except InvalidInput:
            return None

    def rows(self, changes: Sequence[FieldChange]) -> tuple[str, ...]:
        """Return the rows of the diff without its file names.

        Without a diff, return a row for each change, such as ``spec.roles.ps.cpu: 500m -> 1``.
        """
        diff = self.diff(changes)
        if diff is None:
            if self.spec is None or not changes:
                return ()
            return edits.listed(specs.dump_job(self.spec), changes)
        rows = diff.split("\n")[_HEAD:-1]
        return tuple(row.removesuffix("\r") for row in rows if not row.startswith(_NO_LINE_BREAK))
