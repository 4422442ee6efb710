"""Changes that need no restart, in turn with the current settings, in real jobs beside their checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support import paced_cores
from support.group_files import until
from support.shell_jobs import Submit

from paceline.engines.local import machines
from paceline.model.jobs.adjustments import Adjustment
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId, Role
from paceline.probing import windows
from paceline.probing.occupations import Occupation
from paceline.services.local import jobs
from paceline.services.studying import turns

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("preferred"),
    pytest.mark.skipif(machines.read().cgroups is None, reason="no cgroups can be made here"),
]


def with_ps_cores(spec: JobSpec, cores: float) -> JobSpec:
    roles = (
        dataclasses.replace(each, cpu_cores=cores) if each.role is Role.PS else each for each in spec.roles
    )
    return dataclasses.replace(spec, roles=tuple(roles))


@dataclasses.dataclass(frozen=True)
class Noticed(jobs.Jobs):
    """Jobs that say when they are adjusted."""

    adjusted: Callable[[], None] = lambda: None

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        self.adjusted()
        return super().adjust(name, wanted)


def test_a_turn_gives_way_to_a_checkpoint_and_is_taken_again_if_there_was_one_in_it(
    api: jobs.Jobs, submit: Submit, tmp_path: Path
) -> None:
    """The first worker stands still before the first turn, and while the second measures the job as it is."""
    spec, saves = paced_cores.job(tmp_path, "ps-0"), tmp_path / paced_cores.SAVES
    run = paced_cores.training(api, submit(spec))
    worker, known = ReplicaId(Role.WORKER, 0), paced_cores.TIMES.known + 2 * windows.STOOD_SECONDS
    saves.touch()
    until(
        lambda: (
            max(each.at for each in api.recording(run.name).steps if each.replica == worker)
            < api.clock() - known
        )
    )
    told: list[str] = []

    def tell(what: str) -> None:
        told.append(what)
        if what == Occupation.STAND:
            saves.unlink(missing_ok=True)
        elif what == "turn 2 of 3":
            saves.touch()

    noticed = Noticed(api.home, api.store, adjusted=lambda: saves.unlink(missing_ok=True))
    found = turns.take_turns(noticed, run.name, spec, with_ps_cores(spec, 1.0), paced_cores.TIMES, tell)
    assert told[0] == Occupation.STAND
    assert "turn 4 of 4" in told
    assert [len(side.examples_per_second) for side in (found.before, found.after)] == [3, 3]
    pairs = zip(found.before.examples_per_second, found.after.examples_per_second, strict=True)
    factors = [after / before for before, after in pairs]
    assert all(1.3 < factor < 3.0 for factor in factors), "2 is true, and the disturbed turn says 4"
    api.stop(run.name)
