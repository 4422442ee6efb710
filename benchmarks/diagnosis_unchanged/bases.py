"""The healthy jobs of unchanged scripts: what is done wrong is done to them.

All cores that a job may use together are fewer than those of the machine that this was made for, two: so
nothing contends that is not meant to. A worker may be at its limit, which is an info; a server is not.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from support import interpreters, styles

from benchmarks.diagnosis.bases import (
    FOUR,
    FREE,
    GRACE_SECONDS,
    PLAIN,
    PS_HOST,
    TRIO,
    WHOLE,
    WORKER_HOST,
    Base,
    Kind,
)
from benchmarks.diagnosis.trials import TrialError
from benchmarks.protocols import KEPT, ROOT
from paceline.model.jobs.job_specs import Host, JobSpec, RestartPolicy, RestartWhen, RoleSpec
from paceline.model.roles import Role

SCRIPTS = Path(__file__).parent / "scripts"
DATA = KEPT / "diagnosis-unchanged" / "examples"
#: What a run writes is removed before the next one.
WRITTEN = KEPT / "diagnosis-unchanged" / "written"
#: The TensorFlow of this environment; all others are fetched.
OWN_TENSORFLOW = "2.21.0"
RESTING, LATE, LOADING, SOLO = "resting", "late", "loading", "solo"
WIDE, SAVING, EVALUATING = "wide", "saving", "evaluating"
_FILES, _ROWS, _COLUMNS, _VALUE_BYTES = 4, 100_000, 9, 4
_BITS_PER_SECOND = 1e9
_CHIEF_CORES = 0.3
_NEVER = RestartPolicy(when=RestartWhen.NEVER)
_FLAGS = (
    "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--job_name={role}", "--task_index={index}",
    "--data", str(DATA), "--folder", str(WRITTEN),
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script: its file, its arguments, and whether one replica of the role chief drives all workers."""

    path: str
    arguments: tuple[str, ...] = ()
    is_coordinated: bool = False


WIDE_DEEP, FACTORISATION, SEQUENCE = "wide-deep", "factorisation", "sequence"
#: No rule was tuned on these: they were written when the rules were there.
UNSEEN: Mapping[str, Script] = {
    WIDE_DEEP: Script(path=str(SCRIPTS / "tf1_wide_deep.py"), arguments=_FLAGS),
    FACTORISATION: Script(path=str(SCRIPTS / "tf1_factorisation.py"), arguments=_FLAGS),
    SEQUENCE: Script(path=str(SCRIPTS / "tf2_sequence.py"), is_coordinated=True),
}
#: Rules were tried on these when they were written.
FIT: Mapping[str, Script] = {
    name: Script(
        path=style.path,
        arguments=style.arguments,
        is_coordinated="chief" in style.roles and not style.is_session,
    )
    for name, style in styles.STYLES.items()
    if "ps" in style.roles
}
KINDS: Mapping[str, Kind] = {
    PLAIN: Kind(server_cores=0.45, worker_cores=0.5),
    FOUR: Kind(servers=4, server_cores=0.17, worker_cores=0.5),
    TRIO: Kind(workers=3, server_cores=0.45, worker_cores=0.36, cores_of_hosts=True),
    WHOLE: Kind(server_cores=1.0, worker_cores=1.0),
    FREE: Kind(server_cores=None, worker_cores=None),
    # Healthy ones that look as if something were wrong: a script that sleeps, and ones that load for long, of
    # which some are recorded when they train at last, some while they load.
    RESTING: Kind(server_cores=0.45, worker_cores=0.5, arguments=("--pause", "0.05")),
    LATE: Kind(server_cores=0.45, worker_cores=0.5, arguments=("--load", "15")),
    LOADING: Kind(server_cores=0.45, worker_cores=0.5, arguments=("--load", "120")),
    SOLO: Kind(servers=1, workers=1, server_cores=0.6, worker_cores=0.8),
    WIDE: Kind(workers=4, server_cores=0.45, worker_cores=0.25),
    # What scripts do beside their steps, rarely enough.
    SAVING: Kind(
        server_cores=0.45,
        worker_cores=0.5,
        arguments=("--checkpoint-seconds", "600", "--summary-steps", "500"),
    ),
    EVALUATING: Kind(server_cores=0.45, worker_cores=0.5, arguments=("--evaluate-every", "100")),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScriptBase(Base):
    """A healthy job of an unchanged script: ``model`` is the script, ``size`` its TensorFlow's version."""

    seed: int = 0

    @property
    def script(self) -> Script:
        """Return the script."""
        return UNSEEN[self.model] if self.model in UNSEEN else FIT[self.model]

    @property
    def name(self) -> str:
        """Return what names it among all."""
        return f"{self.model}-{self.size}-{self.kind}"

    @property
    def trainers(self) -> tuple[str, ...] | None:
        """Return the replicas that report steps; None: all that train."""
        return (f"{Role.CHIEF}-0",) if self.script.is_coordinated else None

    def folder(self) -> Path:
        """Return the folder of its data."""
        return DATA

    def make_data(self) -> None:
        """Make its data if they are not there, and remove what the run before has written.

        Raises:
            TrialError: its TensorFlow was not fetched.
        """
        if self._python() is None:
            raise TrialError(f"TensorFlow {self.size} is not here: tests/instrumentation/fetch-tensorflows")
        shutil.rmtree(WRITTEN, ignore_errors=True)
        for folder in (DATA, WRITTEN):
            folder.mkdir(parents=True, exist_ok=True)
        for number in range(_FILES):
            path = DATA / f"train-{number}.bin"
            if not path.exists():
                examples(number).tofile(path)

    def _python(self) -> str | None:
        if self.size == OWN_TENSORFLOW:
            return sys.executable
        found = interpreters.with_tensorflow(self.size)
        return None if found is None else str(found)

    def bandwidth(self, role: Role) -> int:
        """Return the bits a second of each host of a role."""
        return round(_BITS_PER_SECOND * self.speed)

    def bytes_per_example(self) -> float:
        """Return the bytes of its data's files for each example."""
        return float(_COLUMNS * _VALUE_BYTES)

    def job(self) -> JobSpec:
        """Return the job."""
        kind, script = KINDS[self.kind], self.script
        found = [(Role.PS, kind.servers, kind.server_cores), (Role.WORKER, kind.workers, kind.worker_cores)]
        if script.is_coordinated:
            cores = None if kind.worker_cores is None else max(_CHIEF_CORES, kind.worker_cores - 0.2)
            found.append((Role.CHIEF, 1, cores))
        return JobSpec(
            name=self.name.replace(".", "-"),
            command=(
                self._python() or f"python-with-{self.size}", script.path, *script.arguments, *kind.arguments,
            ),
            working_dir=str(ROOT),
            environment={"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
            roles=tuple(self._role(*each) for each in found),
            hosts=tuple(self._host(*each) for each in _seats(found)),
            termination_grace_seconds=GRACE_SECONDS,
        )  # fmt: skip

    def _role(self, role: Role, replicas: int, cores: float | None) -> RoleSpec:
        own, threads = (None, 1) if KINDS[self.kind].cores_of_hosts else (cores, None)
        return RoleSpec(role=role, replicas=replicas, cpu_cores=own, threads=threads, restart=_NEVER)

    def _host(self, role: Role, number: int, cores: float | None) -> Host:
        return Host(
            name=f"{PS_HOST if role is Role.PS else WORKER_HOST}-{number}",
            cpu_cores=cores if KINDS[self.kind].cores_of_hosts else None,
            bandwidth_bits_per_second=self.bandwidth(role),
        )


def _seats(roles: list[tuple[Role, int, float | None]]) -> list[tuple[Role, int, float | None]]:
    """Return a host for each replica, with its number; a chief's comes after those of the workers."""
    workers = next(count for role, count, _ in roles if role is Role.WORKER)
    return [
        (role, number + (workers if role is Role.CHIEF else 0), cores)
        for role, count, cores in roles
        for number in range(count)
    ]


def examples(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Return examples: eight ids and a label that depends on them."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, 1_000_000, (_ROWS, _COLUMNS - 1))
    labels = ids[:, :2].sum(1) * 7919 % 13 < 5
    return np.column_stack([ids, labels]).astype(np.int32)
