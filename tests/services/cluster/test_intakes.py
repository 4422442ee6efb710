"""What replicas say is limited, by replica, run and namespace; what is left out is counted and told."""

from __future__ import annotations

from paceline.model.jobs.runs import JobEvent
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster.intakes import LEFT_OUT, TELL_SECONDS, Intake, IntakeLimits, Rate, Whose
from paceline.sources.spools import SpoolReading

WORKER = ReplicaId(Role.WORKER, 0)


class Replicas:
    """Replicas that say much, and the clock of who takes it."""

    def __init__(
        self, records: IntakeLimits, events: IntakeLimits | None = None, sizes: IntakeLimits | None = None
    ) -> None:
        self.now = 0.0
        many = IntakeLimits(*[Rate(1e9, 1e9)] * 3)
        self.intake = Intake(lambda: self.now, records=records, events=events or many, sizes=sizes or many)

    def say(
        self, pod: str, count: int, *, run: str = "ml/a/1", events: int = 0, size: int = 1
    ) -> SpoolReading:
        steps = tuple(
            StepReport(
                replica=WORKER, attempt=1, at=float(n), interval_seconds=1.0, step=n, steps=1, examples=1
            )
            for n in range(count)
        )
        said = tuple(JobEvent(at=1.0, kind="note", message=str(n)) for n in range(events))
        whose = Whose(run.partition("/")[0], run, pod)
        reading = SpoolReading(offset=1, steps=steps, events=said)
        return self.intake.admit(whose, reading, size, replica=WORKER, attempt=1, now=7.0)


def told(reading: SpoolReading) -> list[str]:
    return [event.message for event in reading.events if event.kind == LEFT_OUT]


def test_a_burst_is_kept_and_the_rest_comes_at_a_rate() -> None:
    replicas = Replicas(IntakeLimits(Rate(10, 100), Rate(1e6, 1e6), Rate(1e6, 1e6)))
    first = replicas.say("p", 150)
    assert [report.step for report in first.steps] == list(range(100)), "the first ones"
    assert told(first) == ["50 lines are not kept: there were too many at once"]
    replicas.now = 5.0
    assert len(replicas.say("p", 80).steps) == 50
    assert len(replicas.say("q", 80).steps) == 80, "another replica has its own"
    replicas.now = 1e6
    assert len(replicas.say("p", 150).steps) == 100, "no more than a burst, however long it was silent"


def test_what_is_left_out_is_told_now_and_then() -> None:
    replicas = Replicas(IntakeLimits(*[Rate(0, 10)] * 3))
    assert told(replicas.say("p", 20)) == ["10 lines are not kept: there were too many at once"]
    assert told(replicas.say("p", 5)) == []
    assert told(replicas.say("p", 6)) == []
    replicas.now = TELL_SECONDS
    assert told(replicas.say("p", 0)) == ["11 lines are not kept: there were too many at once"]


def test_a_run_and_a_namespace_have_their_own_limits() -> None:
    replicas = Replicas(IntakeLimits(Rate(0, 100), Rate(0, 150), Rate(0, 200)))
    assert len(replicas.say("p", 100).steps) == 100
    assert len(replicas.say("q", 100).steps) == 50, "of the run"
    assert len(replicas.say("r", 100, run="ml/b/1").steps) == 50, "of the namespace"
    assert len(replicas.say("s", 100, run="ads/a/1").steps) == 100, "of another namespace"


def test_events_have_limits_of_their_own() -> None:
    replicas = Replicas(
        IntakeLimits(*[Rate(0, 100)] * 3), events=IntakeLimits(Rate(0, 3), Rate(0, 99), Rate(0, 99))
    )
    found = replicas.say("p", 50, events=10)
    assert len(found.steps) == 50
    assert [event.kind for event in found.events] == ["note"] * 3 + [LEFT_OUT]


def test_bytes_are_read_later() -> None:
    many = IntakeLimits(*[Rate(1e9, 1e9)] * 3)
    replicas = Replicas(many, sizes=IntakeLimits(Rate(10, 100), Rate(1e9, 1e9), Rate(1e9, 1e9)))
    whose = Whose("ml", "ml/a/1", "p")
    assert replicas.intake.may_read(whose)
    assert len(replicas.say("p", 5, size=200).steps) == 5, "what was read is kept"
    assert not replicas.intake.may_read(whose)
    assert replicas.intake.may_read(Whose("ml", "ml/a/1", "q"))
    replicas.now = 11.0
    assert replicas.intake.may_read(whose)
