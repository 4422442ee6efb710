"""Changes of a job, as people and programs see them: in the text of its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.specs.edits import edits

#: The two lines of a diff that name the files, and what says that the file's last line has no end.
_HEAD = 2
_NO_LINE_BREAK = "\\"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Diffs:
    """Shows changes of one job.

    Attributes:
        source: its file, as submitted; empty: there is none, as of a resource on a cluster.
        spec: what it says; None: it cannot be read.
    """

    source: str = ""
    spec: JobSpec | None = None

    @classmethod
    def of(cls, run: Run | None) -> Diffs:
        """Return those for a run; None: of a job whose spec is wrong, which has none."""
        return cls() if run is None else cls(source=run.source, spec=run.spec)

    def diff(self, changes: Sequence[FieldChange]) -> str | None:
        """Return what changes do to the file; None: nothing, or it cannot be edited."""
        if not changes or not self.source:
            return None
        try:
            return edits.diff(self.source, changes) or None
        except InvalidInput:
            return None

    def rows(self, changes: Sequence[FieldChange]) -> tuple[str, ...]:
        """Return the rows of the diff, without names of files; where there is none, a row for each change,
        such as ``spec.roles.ps.cpu: 500m -> 1``.
        """
        diff = self.diff(changes)
        if diff is None:
            if self.spec is None or not changes:
                return ()
            return edits.listed(specs.dump_job(self.spec), changes)
        rows = diff.split("\n")[_HEAD:-1]
        return tuple(row.removesuffix("\r") for row in rows if not row.startswith(_NO_LINE_BREAK))
