"""Why a job does not run: each cause from what is known of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from paceline.diagnosing.situations import Room, Situation
from paceline.diagnosing.standstills import explain
from paceline.model.explanations.causes import Cause, Evidence, Explanation
from paceline.model.jobs.job_specs import JobSpec, MemoryGrowth, RestartPolicy, RoleSpec
from paceline.model.jobs.obstacles import Obstacle, ObstacleKind
from paceline.model.jobs.queue_waits import QueueWait
from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.measures.recordings import OutputTail
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling.fits import Blocker, Fit

NOW = 10_000.0
PS0, W0, W1 = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)
GIB = 1 << 30


def spec(growth: MemoryGrowth | None = None, **more: Any) -> JobSpec:
    restart = RestartPolicy(limit=3)
    roles = (
        RoleSpec(role=Role.PS, restart=restart),
        RoleSpec(role=Role.WORKER, replicas=2, memory_bytes=GIB, memory_growth=growth, restart=restart),
    )
    return JobSpec(name="clicks", roles=roles, image="clicks:1", command=("train",), **more)


def row(replica: ReplicaId, phase: ReplicaPhase, exit: ExitReason | None = None, **more: Any) -> ReplicaRow:
    return ReplicaRow(replica=replica, phase=phase, exit=exit, **{"attempt": 1, "restarts": 0, **more})


def situation(phase: JobPhase, **more: Any) -> Situation:
    defaults: dict[str, Any] = {
        "name": "clicks", "engine": "kubernetes", "message": "", "submitted_at": NOW - 100,
        "started_at": None if phase is JobPhase.PENDING else NOW - 90,
        "finished_at": NOW - 10 if phase.is_final else None,
        "now": NOW, "spec": spec(),
    }  # fmt: skip
    return Situation(phase=phase, **{**defaults, **more})


def only(found: Explanation) -> Cause:
    (cause,) = found.causes
    assert cause.what.endswith(".")
    assert cause.next_steps
    return cause


def texts(cause: Cause) -> list[str]:
    return [each.text for each in cause.evidence]


def test_nothing_is_wrong_with_a_job_that_runs() -> None:
    rows = [row(each, ReplicaPhase.RUNNING) for each in (PS0, W0, W1)]
    found = explain(situation(JobPhase.RUNNING, replicas=rows))
    assert found.summary == "nothing is wrong: clicks runs, for 1m30s, with all of its 3 replicas"
    assert found.causes == ()
    found = explain(situation(JobPhase.SUCCEEDED, replicas=rows))
    assert found.summary == "nothing is wrong: clicks has succeeded, 10s ago"


def test_all_replicas_are_told_of_only_if_all_run() -> None:
    phases = {PS0: ReplicaPhase.RUNNING, W0: ReplicaPhase.RUNNING, W1: ReplicaPhase.SUCCEEDED}
    rows = [row(each, phase) for each, phase in phases.items()]
    found = explain(situation(JobPhase.RUNNING, replicas=rows))
    assert found.summary == "nothing is wrong: clicks runs, for 1m30s, with 2 of its 3 replicas"
    # A worker that was scaled away is no part of it any more.
    smaller = spec().with_workers(1)
    found = explain(situation(JobPhase.RUNNING, replicas=rows, spec=smaller))
    assert found.summary == "nothing is wrong: clicks runs, for 1m30s, with all of its 2 replicas"


def test_a_job_just_submitted_is_on_its_way() -> None:
    found = explain(situation(JobPhase.PENDING))
    assert (found.summary, found.causes) == ("nothing is wrong: clicks is pending, for 1m40s", ())


def test_it_waits_for_room() -> None:
    blocker = Blocker(
        reason="too little CPU for 4 cores", nodes=tuple(f"n{i}" for i in range(6)), what="worker", missing=2
    )
    fit = Fit(fits=False, places={}, most_workers=3, blockers=(blocker,))
    room = Room(fit=fit, running=("other", "ads/third"))
    cause = only(explain(situation(JobPhase.PENDING, room=room)))
    assert cause.name == "no-room"
    assert "3 workers would fit" in cause.what
    assert texts(cause) == [
        "2 more worker: too little CPU for 4 cores (n0, n1, n2, n3 and 2 more)",
        "room is taken by jobs that run: other, ads/third",
    ]
    assert cause.next_steps[:2] == (
        "spec.roles.worker.replicas: 3 would begin at once",
        "wait until one has ended, or paceline stop other",
    )


def test_it_waits_behind_another_one() -> None:
    room = Room(fit=Fit(fits=True, places={}, most_workers=2), ahead=("big",))
    cause = only(explain(situation(JobPhase.PENDING, room=room)))
    assert (cause.name, "kept for a job that waits before it: big" in cause.what) == ("behind", True)
    fits_now = Room(fit=Fit(fits=True, places={}, most_workers=2))
    assert explain(situation(JobPhase.PENDING, room=fits_now)).causes == ()


MORE = "insufficient unused quota for cpu in flavor default, 2 more needed"


def test_it_waits_in_a_queue_that_says_why() -> None:
    wait = QueueWait(
        system="Kueue", queue="night", reason=MORE, at=NOW - 10, ahead=("big",), waiting=3, holders=("runs",)
    )
    gated = Obstacle(kind=ObstacleKind.GATED, message="scheduling gates: a", replica=W0, attempt=1)
    rows = [row(W0, ReplicaPhase.STARTING)]
    waiting = situation(JobPhase.STARTING, replicas=rows, obstacles=(gated,), queue_wait=wait)
    cause = only(explain(waiting))
    assert cause.name == "in-queue"
    assert cause.what == "It waits in the queue night of Kueue, at place 2 of 3."
    assert texts(cause) == [f"Kueue: {MORE}", "before it wait big", "let in are runs"]
    assert cause.next_steps == (
        "it begins when so much is free in its queue; request less, and it begins sooner",
        "wait until one has ended, or paceline stop runs",
        "big comes first: by priority, or because it waits for longer",
        "kubectl describe localqueue night says what the queue has, and what is used",
    )
    again = dataclasses.replace(wait, was_evicted=True)
    cause = only(explain(dataclasses.replace(waiting, queue_wait=again)))
    assert "was let in before, lost its pods, and waits again" in cause.what


def test_a_gate_that_no_queue_explains_is_told_of() -> None:
    gated = Obstacle(kind=ObstacleKind.GATED, message="scheduling gates: a", replica=W0, attempt=1)
    cause = only(
        explain(situation(JobPhase.STARTING, replicas=[row(W0, ReplicaPhase.STARTING)], obstacles=(gated,)))
    )
    assert (cause.name, texts(cause)) == ("gated", ["worker-0: scheduling gates: a"])


def test_it_did_not_want_to_wait() -> None:
    message = "it does not fit: 2 more worker: too little CPU for 200 cores on n0"
    cause = only(explain(situation(JobPhase.FAILED, message=message)))
    assert (cause.name, cause.evidence[0].at) == ("no-room", NOW - 10)
    assert texts(cause) == ["2 more worker: too little CPU for 200 cores on n0"]


def test_no_supervisor_or_operator_watches_it() -> None:
    told = (Evidence(text="no operator renews the lease paceline/paceline-operator", at=NOW - 300),)
    cause = only(explain(situation(JobPhase.PENDING, unattended=told)))
    assert (cause.name, cause.evidence) == ("no-operator", told)
    lost = situation(JobPhase.RUNNING, unattended=told, engine="local")
    assert only(explain(lost)).next_steps == ("paceline resume clicks",)
    # A job that has ended needs no supervisor.
    assert explain(situation(JobPhase.SUCCEEDED, unattended=told)).causes == ()


def test_a_status_that_its_operator_cannot_read_is_named() -> None:
    cause = only(explain(situation(JobPhase.RUNNING, left_alone="its version is 2")))
    assert (cause.name, cause.evidence) == ("unreadable-status", (Evidence(text="its version is 2"),))


def test_its_spec_is_wrong() -> None:
    message = "the job is wrong: spec.wroker: unknown key; spec.roles: needed"
    cause = only(explain(situation(JobPhase.FAILED, message=message, spec=None)))
    assert cause.name == "wrong-spec"
    assert texts(cause) == ["spec.wroker: unknown key", "spec.roles: needed"]
    assert "kubectl edit trainingjob clicks" in cause.next_steps[0]
    # What runs goes on with the spec that it began with.
    running = explain(situation(JobPhase.RUNNING, message=message, spec=None))
    assert (running.summary, running.causes) == ("nothing is wrong: clicks runs, for 1m30s", ())


def test_it_is_suspended() -> None:
    event = JobEvent(at=NOW - 50, kind="stopped", message="suspended")
    found = explain(situation(JobPhase.STOPPED, is_suspended=True, events=[event]))
    cause = only(found)
    assert found.summary == "clicks is stopped, 50s ago"
    assert (cause.name, texts(cause)) == ("suspended", ["spec.suspend: true", "suspended"])
    assert "paceline resume clicks" in cause.next_steps[0]
    assert only(explain(situation(JobPhase.PENDING, is_suspended=True))).name == "suspended"


def test_its_time_is_over() -> None:
    message = "the active deadline of 60 s passed"
    late = situation(JobPhase.FAILED, message=message, spec=spec(active_deadline_seconds=60.0))
    assert only(explain(late)).name == "deadline"


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ('Pod clicks-ps-0-1 cannot be made: pods "clicks-ps-0-1" is forbidden: exceeded quota: q', "quota"),
        ("ConfigMap clicks does not belong to the job", "refused"),
        ("Service clicks cannot be made: the API server does not answer: x", "refused"),
    ],
)
def test_the_api_server_refuses_it(message: str, name: str) -> None:
    cause = only(explain(situation(JobPhase.STARTING, message=message)))
    assert (cause.name, texts(cause)) == (name, [message])


def exits(replica: ReplicaId, message: str, *at: float) -> list[JobEvent]:
    return [JobEvent(at=each, kind="replica-exited", message=message, replica=replica) for each in at]


def test_a_replica_has_failed_for_good() -> None:
    reason = ExitReason(kind=ExitKind.ERROR, code=3)
    rows = [
        row(PS0, ReplicaPhase.STOPPED, ExitReason(kind=ExitKind.SIGNAL, signal=15)),
        row(W0, ReplicaPhase.FAILED, reason, attempt=4, restarts=3),
    ]
    told = exits(W0, "exit code 3", *(NOW - each for each in (80, 60, 40, 20)))
    found = explain(situation(JobPhase.FAILED, replicas=rows, events=told, message="worker-0 failed"))
    cause = only(found)
    assert (cause.name, cause.what) == ("command-failed", "The command of worker-0 failed (exit code 3).")
    (seen,) = cause.evidence
    assert (seen.text, seen.at, seen.count) == (
        "worker-0: exit code 3, after 3 of 3 restarts", NOW - 20, 4,
    )  # fmt: skip
    assert cause.next_steps == (
        "paceline logs clicks --role worker --index 0 --attempt 4 --tail 20",
        "paceline resume clicks goes on from its last checkpoint, if its script has saved one",
    )


TRACEBACK = (
    "step 7",
    "Traceback (most recent call last):",
    '  File "/code/train.py", line 12, in <module>',
    "    from tensorflow.contrib import layers",
    "ModuleNotFoundError: No module named 'tensorflow.contrib'",
)


def test_what_it_wrote_last_says_why() -> None:
    rows = [
        row(W0, ReplicaPhase.FAILED, ExitReason(kind=ExitKind.ERROR, code=1), attempt=2),
        row(W1, ReplicaPhase.FAILED, ExitReason(kind=ExitKind.ERROR, code=1), attempt=2),
    ]
    output = [
        OutputTail(replica=W1, attempt=1, lines=("ValueError: of an attempt before",)),
        OutputTail(replica=W1, attempt=2, lines=TRACEBACK),
    ]
    cause = only(explain(situation(JobPhase.FAILED, replicas=rows, output=output)))
    assert cause.what == (
        "The command of worker-0, worker-1 failed (exit code 1). "
        "The script uses tf.contrib, which ended with TensorFlow 1.15."
    )
    assert [each.text for each in cause.evidence[:2]] == [
        "it wrote: ModuleNotFoundError: No module named 'tensorflow.contrib'",
        "in your code: /code/train.py:12  from tensorflow.contrib import layers",
    ]
    assert cause.next_steps[0].startswith("an image with TensorFlow 1.15")


def test_what_is_not_known_is_quoted_all_the_same() -> None:
    rows = [row(W0, ReplicaPhase.BACKING_OFF, ExitReason(kind=ExitKind.ERROR, code=1))]
    output = [OutputTail(replica=W0, attempt=1, lines=("my.BrokenError: " + "x" * 1000,))]
    cause = only(explain(situation(JobPhase.RESTARTING, replicas=rows, output=output)))
    assert cause.what == "The command of worker-0 failed (exit code 1)."
    assert cause.evidence[0].text.startswith("it wrote: my.BrokenError: xxx")
    assert len(cause.evidence[0].text) < 500


def test_where_no_line_says_why_the_last_ones_are_quoted_and_said_to_be_the_last() -> None:
    rows = [row(W0, ReplicaPhase.FAILED, ExitReason(kind=ExitKind.ERROR, code=2), attempt=1)]
    output = [
        OutputTail(
            replica=W0, attempt=1, lines=("step 1", "tar: a.tgz: Cannot open: No such file or directory")
        )
    ]
    cause = only(explain(situation(JobPhase.FAILED, replicas=rows, output=output)))
    assert cause.what == "The command of worker-0 failed (exit code 2). A file is not there: a.tgz."
    assert [each.text for each in cause.evidence[:2]] == [
        "it wrote last: step 1",
        "it wrote last: tar: a.tgz: Cannot open: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("reason", "name", "what"),
    [
        (ExitReason(kind=ExitKind.SIGNAL, signal=11), "crashed", "worker-0 crashed (SIGSEGV)."),
        (ExitReason(kind=ExitKind.ERROR, code=139), "crashed", "worker-0 crashed (SIGSEGV)."),
        (ExitReason(kind=ExitKind.ERROR, code=134), "crashed", "worker-0 crashed (SIGABRT)."),
        (
            ExitReason(kind=ExitKind.ERROR, code=137), "killed",
            "worker-0 was ended by signal 9, sent by the kernel or by a process outside Paceline.",
        ),
        (
            ExitReason(kind=ExitKind.ERROR, code=255), "command-failed",
            "The command of worker-0 failed (exit code 255).",
        ),
        (
            ExitReason(kind=ExitKind.ERROR, code=143), "command-failed",
            "The command of worker-0 failed (exit code 143).",
        ),
    ],
)  # fmt: skip
def test_a_crash_is_told_from_a_kill(reason: ExitReason, name: str, what: str) -> None:
    cause = only(explain(situation(JobPhase.FAILED, replicas=[row(W0, ReplicaPhase.FAILED, reason)])))
    assert (cause.name, cause.what) == (name, what)


def test_out_of_memory_asks_for_more() -> None:
    reason = ExitReason(kind=ExitKind.OUT_OF_MEMORY, message="the container's limit was reached")
    rows = [row(W0, ReplicaPhase.BACKING_OFF, reason, restarts=1, memory_bytes=GIB)]
    cause = only(explain(situation(JobPhase.RESTARTING, replicas=rows)))
    assert cause.name == "out-of-memory"
    assert cause.what == "worker-0 ran out of memory (the limit of a worker: 1.0 GiB)."
    assert cause.next_steps[0] == "spec.roles.worker.memory: 1536Mi"
    assert "memory_growth" in cause.next_steps[1]
    grows = situation(JobPhase.RESTARTING, replicas=rows, spec=spec(MemoryGrowth()))
    assert len(only(explain(grows)).next_steps) == 1


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (ExitReason(kind=ExitKind.LAUNCH_FAILED, message="ImagePullBackOff: Back-off pulling x"), "image"),
        (
            ExitReason(
                kind=ExitKind.LAUNCH_FAILED, message='CreateContainerConfigError: secret "s" not found'
            ),
            "configuration",
        ),
        (ExitReason(kind=ExitKind.LAUNCH_FAILED, message="no such command: trian"), "launch-failed"),
        (ExitReason(kind=ExitKind.LOST, message="Evicted: The node was low on resource: memory"), "evicted"),
        (ExitReason(kind=ExitKind.LOST, message="node n1 has not answered for 75 s"), "node-lost"),
        (ExitReason(kind=ExitKind.LOST, message="Preempting: to make room"), "preempted"),
        (ExitReason(kind=ExitKind.DISRUPTED, message="PreemptionByScheduler: make room"), "preempted"),
        (ExitReason(kind=ExitKind.DISRUPTED, message="WorkloadEvicted: Preempted to"), "preempted"),
        (ExitReason(kind=ExitKind.DISRUPTED, message="EvictionByEvictionAPI: drain"), "removed"),
        (ExitReason(kind=ExitKind.DISRUPTED, message="DeletionByTaintManager: gone"), "node-lost"),
        (ExitReason(kind=ExitKind.LOST, message="removed, and not by Paceline"), "removed"),
        (ExitReason(kind=ExitKind.LOST, message="its agent was ended by signal 9"), "lost"),
        (ExitReason(kind=ExitKind.SIGNAL, signal=9), "killed"),
        (ExitReason(kind=ExitKind.ORPHANED), "orphaned"),
        (ExitReason(kind=ExitKind.ERROR, code=1, message="[Errno 28] No space left on device"), "disk-full"),
    ],
)
def test_why_a_replica_ended(reason: ExitReason, name: str) -> None:
    rows = [row(W0, ReplicaPhase.FAILED, reason), row(W1, ReplicaPhase.FAILED, reason)]
    cause = only(explain(situation(JobPhase.FAILED, replicas=rows)))
    assert cause.name == name
    assert "worker-0, worker-1" in cause.what
    assert "{" not in " ".join((cause.what, *cause.next_steps))


def test_who_took_a_pod_that_is_gone_is_known_by_its_events() -> None:
    gone = ExitReason(kind=ExitKind.LOST, message="removed, and not by Paceline")
    rows = [row(W0, ReplicaPhase.STARTING, gone, attempt=2, restarts=1)]
    message = "Preempted by ads/high-0 on node n1"
    told = [Obstacle(kind=ObstacleKind.PREEMPTED, message=message, replica=W0, attempt=1, at=NOW - 5)]
    cause = only(explain(situation(JobPhase.RESTARTING, replicas=rows, obstacles=told)))
    assert cause.name == "preempted"
    assert texts(cause)[1] == f"worker-0: {message}"
    other = [Obstacle(kind=ObstacleKind.PREEMPTED, message=message, replica=W1, attempt=1)]
    cause = only(explain(situation(JobPhase.RESTARTING, replicas=rows, obstacles=other)))
    assert cause.name == "removed"


def test_what_is_over_comes_last_and_says_so() -> None:
    error = ExitReason(kind=ExitKind.ERROR, code=1)
    back = row(W0, ReplicaPhase.RUNNING, error, attempt=2, restarts=1)
    others = [row(PS0, ReplicaPhase.RUNNING), row(W1, ReplicaPhase.RUNNING)]
    found = explain(situation(JobPhase.RUNNING, replicas=[back, *others]))
    assert found.summary == "clicks runs, for 1m30s; before, this happened"
    assert only(found).is_past
    memory = ExitReason(kind=ExitKind.OUT_OF_MEMORY)
    waits = row(W1, ReplicaPhase.BACKING_OFF, memory, restarts=1, memory_bytes=GIB)
    found = explain(situation(JobPhase.RESTARTING, replicas=[back, waits]))
    assert [(each.name, each.is_past) for each in found.causes] == [
        ("out-of-memory", False), ("command-failed", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("0/4 nodes are available: 4 Insufficient cpu.", "request less"),
        ("0/2 nodes are available: 2 node(s) had taint {gpu: yes}, that the pod didn't tolerate.", "tolerat"),
        ("0/2 nodes are available: 2 node(s) didn't match node selector.", "node_selector"),
        ("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.", "strategy: any"),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", "uncordon"),
        ('persistentvolumeclaim "data" not found: volume', "describe pvc"),
    ],
)
def test_the_scheduler_finds_no_node(said: str, advice: str) -> None:
    rows = [row(PS0, ReplicaPhase.RUNNING), row(W0, ReplicaPhase.STARTING), row(W1, ReplicaPhase.STARTING)]
    waits = [
        Obstacle(
            kind=ObstacleKind.UNSCHEDULABLE, message=said, replica=each, attempt=1, at=NOW - 3, count=count
        )
        for each, count in ((W0, 7), (W1, 5))
    ]
    cause = only(explain(situation(JobPhase.STARTING, replicas=rows, obstacles=waits)))
    assert cause.name == "unschedulable"
    (seen,) = cause.evidence
    assert (seen.text, seen.count, seen.at) == (f"worker-0, worker-1: {said}", 7, NOW - 3)
    assert advice in cause.next_steps[0]


@pytest.mark.parametrize("kind", ["image", "configuration", "volume", "crash-loop", "node-lost", "coming"])
def test_what_keeps_a_pod_from_running(kind: str) -> None:
    rows = [row(W0, ReplicaPhase.STARTING, attempt=2)]
    waits = [Obstacle(kind=ObstacleKind(kind), message="so it says", replica=W0, attempt=2)]
    cause = only(explain(situation(JobPhase.STARTING, replicas=rows, obstacles=waits)))
    assert (cause.name, texts(cause)) == (kind, ["worker-0: so it says"])
    # An attempt that is over is no obstacle.
    old = [Obstacle(kind=ObstacleKind(kind), message="so it says", replica=W0, attempt=1)]
    assert explain(situation(JobPhase.STARTING, replicas=rows, obstacles=old)).causes == ()


def test_a_full_disk_is_of_the_whole_job() -> None:
    full = [Obstacle(kind=ObstacleKind.DISK_FULL, message="3 MiB are free at /runs")]
    assert only(explain(situation(JobPhase.RUNNING, obstacles=full, engine="local"))).name == "disk-full"


def test_a_failure_that_no_rule_knows_says_what_was_said() -> None:
    cause = only(explain(situation(JobPhase.FAILED, message="nothing I know")))
    assert (cause.name, "nothing I know" in cause.what) == ("failed", True)


def test_a_job_that_is_stopping_says_what_is_left() -> None:
    rows = [row(W0, ReplicaPhase.STOPPING), row(W1, ReplicaPhase.STOPPED)]
    cause = only(explain(situation(JobPhase.STOPPING, replicas=rows)))
    assert (cause.name, texts(cause)) == ("stopping", ["worker-0"])
    assert "parameter servers" not in cause.what
    cause = only(explain(situation(JobPhase.STOPPING, replicas=[row(PS0, ReplicaPhase.RUNNING), *rows])))
    assert texts(cause) == ["worker-0"]
    assert "parameter servers end after them" in cause.what


@pytest.mark.parametrize(
    ("has_checkpoint", "said"),
    [
        (True, "goes on from its last checkpoint"),
        (False, "starts it from the beginning: there is no checkpoint in its folder"),
        (None, "goes on from its last checkpoint, if its script has saved one"),
    ],
)
def test_where_a_job_goes_on_is_said_as_far_as_it_is_known(has_checkpoint: bool | None, said: str) -> None:
    stopped = situation(JobPhase.STOPPED, has_checkpoint=has_checkpoint)
    assert only(explain(stopped)).next_steps == (f"paceline resume clicks {said}",)
