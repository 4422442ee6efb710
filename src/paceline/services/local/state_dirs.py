"""Where Paceline keeps its state on this machine."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from paceline.engines.local import folders


@dataclasses.dataclass(frozen=True, slots=True)
class Home:
    """A state folder and a store: ``$PACELINE_HOME`` and ``$PACELINE_STORE``, or their defaults."""

    path: Path
    store_url: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Home:
        """Return the home that the environment names.

        ``PACELINE_HOME`` defaults to ``paceline`` in ``XDG_STATE_HOME``; ``PACELINE_STORE`` (a SQLAlchemy
        URL) defaults to a SQLite file in the home.
        """
        state = environment.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
        path = Path(environment.get("PACELINE_HOME") or Path(state) / "paceline").expanduser().absolute()
        return cls(path, environment.get("PACELINE_STORE") or f"sqlite:///{path / 'paceline.db'}")

    @property
    def runs(self) -> Path:
        """The folder that holds a folder for each run."""
        return self.path / "runs"

    @property
    def lock(self) -> Path:
        """The file that is locked while names, ports and cores are chosen."""
        return self.path / "submit.lock"

    def folder(self, name: str) -> folders.RunFolder:
        """Return the folder of a run."""
        return folders.RunFolder(self.runs / name)
