"""The changes that causes propose, as people and programs see them: in the text of the job file."""

from __future__ import annotations

import dataclasses

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.causes import Cause
from paceline.model.jobs import JobSpec
from paceline.model.runs import Run
from paceline.specs import edits

#: The two lines of a diff that name the files, and what says that the file's last line has no end.
_HEAD = 2
_NO_LINE_BREAK = "\\"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Shows changes of one job.

    Attributes:
        source: its file, as submitted; empty: nobody has it, as of a resource on a cluster.
        spec: what it says; None: nobody can read it.
    """

    source: str = ""
    spec: JobSpec | None = None

    @classmethod
    def of(cls, run: Run | None) -> Proposals:
        """Return those for a run; None: of a job whose spec is wrong, which has none."""
        return cls() if run is None else cls(source=run.source, spec=run.spec)

    def diff(self, cause: Cause) -> str | None:
        """Return what a cause changes in the file; None: nothing, or the file cannot be edited."""
        if not cause.changes or not self.source:
            return None
        try:
            return edits.diff(self.source, cause.changes) or None
        except InvalidInput:
            return None

    def rows(self, cause: Cause) -> tuple[str, ...]:
        """Return the rows of the diff, without names of files; where there is none, a row for each change,
        such as ``spec.roles.ps.cpu: 500m -> 1``.
        """
        diff = self.diff(cause)
        if diff is None:
            if self.spec is None or not cause.changes:
                return ()
            return edits.listed(specs.dump_job(self.spec), cause.changes)
        rows = diff.split("\n")[_HEAD:-1]
        return tuple(row.removesuffix("\r") for row in rows if not row.startswith(_NO_LINE_BREAK))
