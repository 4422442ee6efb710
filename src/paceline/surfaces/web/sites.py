"""What a server stands on: where its jobs are, where it keeps things, who may pass."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from pathlib import Path

from paceline.errors import InvalidInput
from paceline.model.runs import LOCAL
from paceline.services.jobs import Jobs
from paceline.services.life_cycles import LifeCycle
from paceline.services.lookouts import Lookout
from paceline.stores import Store
from paceline.surfaces.web.gates import Gate


class Site(abc.ABC):
    """A place with jobs that a server gives access to."""

    #: What runs the jobs, as in ``Run.engine``.
    engine: str
    #: The namespace that is meant where none is named; None: this machine has none.
    namespace: str | None
    store: Store
    gate: Gate
    #: Unix seconds.
    clock: Callable[[], float]

    @abc.abstractmethod
    def jobs(self, namespace: str | None) -> LifeCycle:
        """Return what can be done with the jobs of a namespace.

        Raises:
            InvalidInput: there are no namespaces here, and one is named.
        """

    @abc.abstractmethod
    def lookout(self, namespace: str | None) -> Lookout:
        """Return the latest looks at the jobs of a namespace; raises as ``jobs`` does."""

    @abc.abstractmethod
    def base(self, named: str | None) -> Path:
        """Return the folder that a submitted job file's paths start from.

        Raises:
            InvalidInput: none may be named here, or it is no folder.
        """


class LocalSite(Site):
    """The jobs of a home on this machine.

    Args:
        jobs: what can be done with them.
        gate: who may.
    """

    engine = LOCAL
    namespace = None

    def __init__(self, jobs: Jobs, gate: Gate) -> None:
        self._jobs = jobs
        self._lookout = Lookout(jobs, time.monotonic)
        self.store, self.clock, self.gate = jobs.store, jobs.clock, gate

    def jobs(self, namespace: str | None) -> LifeCycle:
        """Return what can be done with the jobs of this machine."""
        if namespace is not None:
            raise InvalidInput(f"this machine has no namespaces: {namespace!r}", "leave it out")
        return self._jobs

    def lookout(self, namespace: str | None) -> Lookout:
        """Return the latest looks at the jobs of this machine."""
        return self._lookout

    def base(self, named: str | None) -> Path:
        """Return a folder of this machine; whoever has the token may read here what the server may."""
        if named is None:
            return self._jobs.home.path
        folder = Path(named)
        if "\0" in named or not folder.is_absolute() or not folder.is_dir():
            raise InvalidInput(f"{named!r} is no folder of this machine", "name it by its whole path")
        return folder
