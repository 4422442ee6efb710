"""Why replicas ended: from their exit reasons, and from what was observed of their pods."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing.failures import known, last_words
from paceline.diagnosing.failures.last_words import LastWords
from paceline.diagnosing.situations import Situation
from paceline.diagnosing.waits import replica_commands
from paceline.model import quantities
from paceline.model.explanations.causes import Cause, Evidence
from paceline.model.jobs.job_specs import RoleSpec
from paceline.model.jobs.obstacles import ObstacleKind
from paceline.model.jobs.runs import ReplicaRow
from paceline.model.jobs.statuses import ExitKind, ExitReason, ReplicaPhase
from paceline.model.roles import Role
from paceline.model.words import listed

#: The number of replicas that are shown for each kind of end.
SHOWN = 5
#: The number of characters that are quoted from a line.
_QUOTED = 400
#: The first word of the container runtime's message about a container that could not be started.
_IMAGE_WORDS = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
    "RegistryUnavailable",
)  # fmt: skip
_CONTAINER_WORDS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
#: The kernel's message for ``ENOSPC``.
_NO_SPACE = "No space left on device"
_KILLED = 9
#: The signals that end a process that crashes (signal(7)).
_CRASHES = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
#: The sentence about each kind of end.
_SENTENCES = {
    "out-of-memory": "{who} ran out of memory{limit}.",
    "command-failed": "The command of {who} failed{code}.",
    "crashed": "{who} crashed ({signal}).",
    "killed": "{who} was ended by signal {signal}{by}.",
    "image": "The image of {who} cannot be pulled.",
    "configuration": "The container of {who} cannot be made.",
    "launch-failed": "{who} could not be started.",
    "disk-full": "{who} found a full disk.",
    "evicted": "The node of {who} had no room left and evicted it.",
    "preempted": "{who} had to make room for what has a higher priority.",
    "node-lost": "The node of {who} was lost.",
    "removed": "The pod of {who} was removed, and not by Paceline.",
    "orphaned": "{who} ended itself, because no supervisor watched it for a minute.",
}
#: The next steps for each kind of end; for other kinds, the next step is to read the last lines of the log.
_STEPS: dict[str, tuple[str, ...]] = {
    "out-of-memory": (),
    "image": ("spec.image: see that {image} is there, and that the nodes may pull it",),
    "configuration": ("make what is missing, or take it out of spec.volumes and spec.secrets",),
    "launch-failed": ("see that {command} is there and may be executed", "{logs}"),
    "disk-full": ("free some room where logs and checkpoints are: paceline prune", "{logs}"),
    "evicted": (
        "spec.roles.{role}: request the memory and disk that it really uses",
        "kubectl describe node says what the node lacked",
    ),
    "preempted": ("it comes back where there is room; nothing is to be done",),
    "node-lost": ("kubectl get nodes; kubectl describe node says since when and why",),
    "removed": ("it gets a next attempt by itself; kubectl get events may say who it was",),
    "orphaned": (),
}


#: By the reason of a disruption (Kubernetes' documentation, "Pod disruption conditions"); the others preempt.
_DISRUPTIONS = {"EvictionByEvictionAPI": "removed", "DeletionByTaintManager": "node-lost"}


class _Ending(NamedTuple):
    """The end of some replicas of one role that all ended in the same way."""

    name: str
    role: Role
    rows: Sequence[ReplicaRow]
    reason: ExitReason
    words: LastWords | None
    meaning: str
    cures: Sequence[str]


def endings(situation: Situation) -> Iterator[Cause]:
    """Yield why replicas ended that have failed, are about to restart, or have restarted."""
    found: dict[tuple[str, Role, bool], list[ReplicaRow]] = collections.defaultdict(list)
    for row in situation.replicas:
        if row.exit is not None and row.exit.kind is not ExitKind.COMPLETED and _counts(row):
            found[_name(situation, row, row.exit), row.replica.role, _is_past(row)].append(row)
    # Replicas that failed for good come first: they decided how the job ended.
    ordered = sorted(
        found.items(), key=lambda each: not any(row.phase is ReplicaPhase.FAILED for row in each[1])
    )
    for (name, role, is_past), rows in ordered:
        reason = rows[0].exit
        assert reason is not None, "only rows with an exit are gathered"
        words = _words(situation, name, rows)
        failure = None if words is None else known.find(words)
        meaning, cures = ("", ()) if failure is None or words is None else failure.filled(words)
        ending = _Ending(name, role, rows, reason, words, meaning, cures)
        yield Cause(
            name=name,
            what=_what(situation, ending),
            evidence=(*_written(ending), *_evidence(situation, rows)),
            next_steps=tuple(_next_steps(situation, ending)),
            is_past=is_past,
        )


def _counts(row: ReplicaRow) -> bool:
    """Whether the end of a replica matters: the replica failed or restarts, and was not just stopped."""
    was_disrupted = row.exit is not None and row.exit.kind is ExitKind.DISRUPTED
    return row.has_failed or ((row.restarts > 0 or was_disrupted) and not row.phase.is_final)


def _is_past(row: ReplicaRow) -> bool:
    return row.phase is ReplicaPhase.RUNNING


def _name(situation: Situation, row: ReplicaRow, reason: ExitReason) -> str:
    """Return the kind of an end in one word."""
    word = reason.message.partition(":")[0]
    if _NO_SPACE in reason.message:
        return "disk-full"
    if reason.kind is ExitKind.LAUNCH_FAILED:
        if word in _IMAGE_WORDS:
            return "image"
        return "configuration" if word in _CONTAINER_WORDS else "launch-failed"
    if reason.ended_by in _CRASHES:
        return "crashed"
    if reason.kind is ExitKind.ERROR and reason.ended_by == _KILLED:
        return "killed"
    if reason.kind is not ExitKind.LOST:
        by_kind = {
            ExitKind.ERROR: "command-failed",
            ExitKind.SIGNAL: "killed",
            ExitKind.DISRUPTED: _DISRUPTIONS.get(word, "preempted"),
        }
        return by_kind.get(reason.kind, reason.kind)
    if word == "Evicted":
        return "evicted"
    if word in ("Preempting", "Preempted"):
        return "preempted"
    if "has not answered" in reason.message or word in ("NodeLost", "NodeShutdown", "Terminated"):
        return "node-lost"
    # Events may still say why a pod is gone. Obstacles of the next attempt say nothing about this one's end.
    for each in situation.obstacles:
        told = each.kind in (ObstacleKind.EVICTED, ObstacleKind.PREEMPTED, ObstacleKind.NODE_LOST)
        if told and (each.replica, each.attempt) == (row.replica, _ended(row)):
            return str(each.kind)
    return "removed" if "removed" in reason.message else "lost"


def _words(situation: Situation, name: str, rows: Sequence[ReplicaRow]) -> LastWords | None:
    """Return the last words of the first replica that wrote about its failure; None: no replica did."""
    if name not in ("command-failed", "crashed"):
        return None
    ended = {(row.replica, _ended(row)) for row in rows}
    outputs = [each.lines for each in situation.output if (each.replica, each.attempt) in ended]
    every = (words for read in (last_words.read, last_words.closing) for words in map(read, outputs))
    return next((words for words in every if words is not None), None)


def _what(situation: Situation, ending: _Ending) -> str:
    """Return what happened and, for a known failure, what it means."""
    role = situation.spec.role(ending.role) if situation.spec else None
    reason, signal = ending.reason, ending.reason.ended_by
    told = _SENTENCES.get(ending.name, "{who} was lost.").format(
        who=listed(row.replica for row in ending.rows),
        limit=_limit(role),
        code="" if reason.code is None else f" (exit code {reason.code})",
        signal=_CRASHES.get(signal or 0, signal),
        by=", sent by the kernel or by a process outside Paceline" if signal == _KILLED else "",
    )
    return f"{told} {ending.meaning}".rstrip()


def _written(ending: _Ending) -> Iterator[Evidence]:
    """Yield the relevant last lines of the output, and the place in the user's code."""
    if ending.words is None:
        return
    wrote = "it wrote" if ending.words.is_reason else "it wrote last"
    for line in (ending.words.line, *ending.words.more):
        yield Evidence(text=f"{wrote}: {line[:_QUOTED]}")
    if ending.words.place is not None:
        yield Evidence(text=f"in your code: {ending.words.place}")


def _limit(role: RoleSpec | None) -> str:
    if role is None or role.memory_bytes is None:
        return ""
    return f" (the limit of a {role.role}: {quantities.format_bytes(role.memory_bytes)})"


def _evidence(situation: Situation, rows: Sequence[ReplicaRow]) -> Iterator[Evidence]:
    for row in rows[:SHOWN]:
        told = situation.exits(row.replica, str(row.exit))
        yield Evidence(
            text=f"{row.replica}: {row.exit}{_restarts(situation, row)}",
            at=told[-1].at if told else None,
            count=max(1, len(told)),
        )
    if len(rows) > SHOWN:
        yield Evidence(text=f"{len(rows) - SHOWN} more in the same way")
    seen = {(row.replica, _ended(row)) for row in rows}
    for each in situation.obstacles:
        told_by_place = each.kind in (ObstacleKind.EVICTED, ObstacleKind.PREEMPTED)
        if told_by_place and (each.replica, each.attempt) in seen:
            yield Evidence(text=f"{each.replica}: {each.message}", at=each.at, count=each.count)


def _restarts(situation: Situation, row: ReplicaRow) -> str:
    role = situation.spec.role(row.replica.role) if situation.spec else None
    if role is None:
        return ""
    if row.phase is ReplicaPhase.FAILED:
        if not row.restarts:
            return ", and is not started again"
        return f", after {row.restarts} of {role.restart.limit} restarts"
    if row.exit is not None and row.exit.kind is ExitKind.DISRUPTED:
        return ", which does not count as a restart"
    return f", restart {row.restarts} of {role.restart.limit}"


def _next_steps(situation: Situation, ending: _Ending) -> Iterator[str]:
    """Yield the next steps: changes of the job first."""
    row, spec = ending.rows[0], situation.spec
    if ending.name == "out-of-memory":
        yield from _more_memory(row, spec.role(ending.role) if spec else None)
    yield from ending.cures
    command = spec.command_of(ending.role) if spec else ()
    logs = replica_commands(situation.name, row.replica, _ended(row))
    for step in _STEPS.get(ending.name, ("{logs}",)):
        yield step.format(
            image=spec.image if spec else None,
            command=command[0] if command else "the command",
            role=ending.role,
            logs=logs,
        )
    if situation.phase.is_final:
        yield situation.resume_step


def _ended(row: ReplicaRow) -> int:
    """Return the attempt that the exit reason of a replica is about."""
    return row.attempt if row.has_failed else row.attempt - 1


def _more_memory(row: ReplicaRow, role: RoleSpec | None) -> Iterator[str]:
    had = row.memory_bytes or (role.memory_bytes if role else None)
    if role is None or had is None:
        yield "give it more memory"
        return
    wanted = quantities.quantity_bytes(-(-had * 3 // 2 // (1 << 20)) * (1 << 20))
    yield f"spec.roles.{role.role}.memory: {wanted}"
    if role.memory_growth is None:
        yield f"spec.roles.{role.role}.memory_growth: {{factor: 1.5}} gives more with each attempt"
