"""Which parts of a job can be cut, and to what each is set."""

from __future__ import annotations

from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.measures.probes import CutPart
from paceline.model.roles import ReplicaId
from paceline.probing import scopes
from paceline.probing.scopes import ObservedReplica, ProbedJob


def seen(name: str, cores: float | None = 1.0, used: float | None = 0.5) -> ObservedReplica:
    return ObservedReplica(replica=ReplicaId.parse(name), cores=cores, used_cores=used)


JOB = (seen("ps-0"), seen("ps-1"), seen("worker-0", 0.5), seen("worker-1", 0.5), seen("evaluator-0"))
PS, WORKERS = CutPart(Knob.CPU, ("ps-0", "ps-1")), CutPart(Knob.CPU, ("worker-0", "worker-1"))


def test_replicas_that_are_alike_are_cut_together_and_an_evaluator_never() -> None:
    parts, whole = scopes.parts(ProbedJob(replicas=JOB))
    assert parts == (PS, WORKERS)
    assert whole == ()


def test_trainers_that_do_not_wait_for_each_other_are_not_cut_apart_and_the_last_may_stand_still() -> None:
    parts, whole = scopes.parts(ProbedJob(replicas=JOB, may_pause=True))
    assert parts == (PS, WORKERS, CutPart(Knob.PAUSE, ("worker-1",)))
    assert whole == (WORKERS,)


def test_links_and_shares_of_a_crowded_machine_are_parts() -> None:
    scene = ProbedJob(replicas=JOB, machine_cores=2.0, links={"b": 30_000_000, "a": 30_000_000})
    parts, _ = scopes.parts(scene)
    assert CutPart(Knob.LINK, ("a", "b")) in parts
    assert CutPart(Knob.WEIGHT, PS.targets) in parts
    idle, _ = scopes.parts(ProbedJob(replicas=JOB, machine_cores=64.0))
    assert not [each for each in idle if each.knob is Knob.WEIGHT]


def test_replicas_of_which_no_limit_is_known_are_left_alone() -> None:
    assert scopes.parts(ProbedJob(replicas=[seen("ps-0", None), seen("worker-0", None)])) == ((), ())


def test_each_target_is_set_to_its_own_share() -> None:
    scene = ProbedJob(replicas=JOB, links={"a": 30_000_001})
    wanted = scopes.adjustments(scene, CutPart(Knob.CPU, ("ps-0", "worker-0")), 0.7, until=9.0)
    assert [(each.target, each.value) for each in wanted] == [("ps-0", 0.7), ("worker-0", 0.35)]
    assert all(each.until == 9.0 for each in wanted)
    assert scopes.adjustments(scene, CutPart(Knob.LINK, ("a",)), 0.7, until=9.0) == (
        Adjustment(knob=Knob.LINK, target="a", value=21_000_000, until=9.0),
    )


def test_no_replica_is_starved() -> None:
    scene = ProbedJob(replicas=[seen("ps-0", 0.06)])
    (wanted,) = scopes.adjustments(scene, CutPart(Knob.CPU, ("ps-0",)), 0.6, until=9.0)
    assert wanted.value == scopes.LEAST_CORES


def test_one_of_three_trainers_that_stands_still_leaves_two_thirds() -> None:
    scene = ProbedJob(replicas=[*JOB, seen("worker-2")])
    assert scopes.factor_of(scene, CutPart(Knob.PAUSE, ("worker-2",)), 0.7) == 2 / 3
    assert scopes.factor_of(scene, PS, 0.7) == 0.7
