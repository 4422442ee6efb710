"""The topics of causes in plain words: the catalogue that ``paceline explain`` reads from.

A cause has a name for programs. Its topic gives it a code that people can look up, and says how the cause
arises, what to do and what that may cost. Codes are stable: LIFE1 is about the supervision of a job, LIFE2
about jobs that cannot begin, LIFE3 about replicas that cannot start, LIFE4 about replicas that ended. The
topics of causes of slowness are defined next to their rules.
"""

from __future__ import annotations

import dataclasses

from paceline.model.explanations.findings import Severity


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One kind of cause.

    Attributes:
        code: such as ``LIFE201``.
        name: the name of its causes, such as ``no-room``.
        title: the cause in one line.
        why: how the cause arises.
        fix: what to do.
        risk: what the fix may cost.
        severity: the severity of its causes.
        is_sparing: whether the cause makes no job slower, and fixing it only frees resources for other jobs.
    """

    code: str
    name: str
    title: str
    why: str
    fix: str
    risk: str = ""
    severity: Severity = Severity.ERROR
    is_sparing: bool = False


TOPICS = (
    Topic(
        code="LIFE101", name="no-supervisor", title="The supervisor of a job on this machine is gone",
        why="Each job has a supervisor, and that a guard which starts it again. Both were killed, or the "
        "machine was restarted. Replicas end themselves after a minute without a supervisor.",
        fix="paceline resume takes over what still runs, and brings back the rest from the last "
        "checkpoint.",
    ),
    Topic(
        code="LIFE102", name="no-operator", title="No operator looks after the jobs of the cluster",
        why="The lease that an operator holds has run out, or no operator has looked at a new job for a "
        "while: the operator is not installed, not scheduled, or lacks rights. Pods that run go on "
        "meanwhile.",
        fix="See what became of the deployment; an operator that comes back finds its jobs again and "
        "loses nothing.",
    ),
    Topic(
        code="LIFE103", name="suspended", title="The job was stopped on request",
        severity=Severity.INFO,
        why="paceline stop, or spec.suspend: true. Its workers, chief and evaluator got SIGTERM, and its "
        "parameter servers when these had ended, so that a chief could save its last step.",
        fix="paceline resume goes on from the last checkpoint, if the script has saved one.",
    ),
    Topic(
        code="LIFE104", name="stopping", title="The job is ending",
        severity=Severity.INFO,
        why="Workers, chief and evaluator are asked to end first: a chief saves a last checkpoint, and for "
        "that it needs the parameter servers. These are asked when the last of them has ended. Each replica "
        "has the job's termination_grace from when it was asked; then it is killed.",
        fix="Wait: about twice the grace at most. If it always takes the whole of it, the command does not "
        "handle SIGTERM, or the grace is too short for a checkpoint.",
    ),
    Topic(
        code="LIFE105", name="deadline", title="The job ran longer than it may",
        why="spec.active_deadline counts from the first launch, restarts and waiting for nodes included.",
        fix="Give it more time, or see why it is slow: paceline top. It goes on from its last checkpoint, if "
        "its script has saved one.",
    ),
    Topic(
        code="LIFE106", name="unreadable-status", title="The operator cannot read where the job stands",
        why="All that an operator knows of a job is its status. A newer operator wrote it before a rollback, "
        "two versions run beside each other, or it was edited by hand. To begin anew would train twice and "
        "lose where the job stands, so nothing of it is touched: its pods go on.",
        fix="Bring the newer operator back; it goes on from the status. Or delete the job, and submit it "
        "again: it goes on from its last checkpoint.",
        risk="While it is left alone no replica that ends comes back, and stop and resume do nothing.",
    ),
    Topic(
        code="LIFE201", name="wrong-spec", title="The job's spec cannot be read",
        why="It was applied past paceline submit, which checks it, or the definition of TrainingJob on "
        "the cluster is of another version.",
        fix="paceline lint names file, line and column; the operator looks again at once when the spec "
        "changes.",
    ),
    Topic(
        code="LIFE202", name="no-room", title="There is no room for all of the job's replicas at once",
        severity=Severity.WARNING,
        why="A part of a job cannot train: parameter servers without workers, or workers that wait for a "
        "server, hold resources for nothing, and two halves of two jobs hold each other up for ever. "
        "So a job begins whole or not at all (scheduling.fit: hold).",
        fix="Ask for fewer or smaller replicas, or wait. paceline fit FILE says what is free on which "
        "node. scheduling.fit: off lets the scheduler place what it can.",
    ),
    Topic(
        code="LIFE203", name="behind", title="Room is kept for a job that waits before it",
        severity=Severity.INFO,
        why="Jobs that wait are served by priority and age. A small job may pass a large one for a while, "
        "but not for ever, or the large one would starve.",
        fix="Wait, or give the job a higher scheduling.priority: then others wait for it.",
    ),
    Topic(
        code="LIFE204", name="quota", title="A quota of the namespace is used up",
        why="The API server refuses pods that would exceed a ResourceQuota. Requests count, not use.",
        fix="Smaller or fewer replicas, jobs deleted that have ended with their pods kept, or a larger "
        "quota.",
    ),
    Topic(
        code="LIFE205", name="refused", title="The API server refuses an object of the job",
        why="An admission policy refuses it, an object of another owner has its name, or the operator "
        "lacks a right.",
        fix="Its message says which. The operator tries again, less and less often.",
    ),
    Topic(
        code="LIFE206", name="in-queue", title="The job's queue does not let it in yet",
        severity=Severity.INFO,
        why="With scheduling.queue, Kueue or Volcano decides when a job begins: when the quota of its queue, "
        "or the cluster, has room for all of its replicas. A job of higher priority may take the room of one "
        "that runs; this one then waits again.",
        fix="Wait, request less, or ask those who run the queue for more of it. The words of the queue say "
        "what is missing.",
    ),
    Topic(
        code="LIFE301", name="unschedulable", title="The scheduler finds no node for a pod",
        why="No node has what it requests, or taints, selectors or affinities exclude those that have.",
        fix="The scheduler's message counts nodes by reason; paceline fit names them.",
    ),
    Topic(
        code="LIFE302", name="image", title="The image cannot be pulled",
        why="It is not there, its name is misspelt, or the registry wants credentials that the pod does "
        "not have.",
        fix="Pull it by hand on a node with the same credentials; give imagePullSecrets to the service "
        "account.",
    ),
    Topic(
        code="LIFE303", name="configuration", title="The container cannot be made",
        why="Something that it mentions is missing (a secret, a config map, a key of one), or what it "
        "asks for is not allowed (a user, a path).",
        fix="Make what is missing, or take it out of the job file.",
    ),
    Topic(
        code="LIFE304", name="volume", title="A volume cannot be mounted",
        why="Its claim is not bound, it is in another zone, or another node has it and it may be on one "
        "only.",
        fix="kubectl describe pvc; volumes that all replicas mount have to be ReadWriteMany.",
    ),
    Topic(
        code="LIFE305", name="crash-loop", title="A container ends again and again before the command begins",
        why="It is one that brings the agent or fetches the code; the job's own command is never "
        "restarted in place.",
        fix="Its last words say why: most often an address or a checksum of spec.code that is wrong.",
    ),
    Topic(
        code="LIFE306", name="coming", title="A pod is being started",
        severity=Severity.INFO,
        why="Its image is being pulled, or its volumes are being mounted.",
        fix="Wait. Large images take minutes the first time on a node.",
    ),
    Topic(
        code="LIFE307", name="launch-failed", title="The command could not be started",
        why="There is no such program in the image or on this machine, or it may not be executed.",
        fix="Name it by its full path, or see that it is on PATH where the replica runs.",
    ),
    Topic(
        code="LIFE308", name="gated", title="A scheduling gate holds back a pod",
        severity=Severity.INFO,
        why="A pod with a scheduling gate is not placed until the gate is taken away. Queues use gates, and "
        "so do policies of a cluster.",
        fix="See whose gate it is: the name says, as a rule.",
    ),
    Topic(
        code="LIFE401", name="command-failed", title="The command ended with an error",
        why="It returned an exit code other than 0: an exception in the script, most often.",
        fix="What it wrote last says why. restart: {when: never} has a job fail at once instead of trying "
        "again.",
    ),
    Topic(
        code="LIFE402", name="out-of-memory", title="A replica ran out of memory",
        why="The kernel killed it at its limit. Parameter servers hold variables and the optimizer's "
        "slots (Adam: three times the variables); workers hold batches and what reads ahead.",
        fix="More memory, or memory_growth, which gives more with each attempt. For a parameter server "
        "more of them help only if the largest variable is partitioned: paceline plan.",
    ),
    Topic(
        code="LIFE403", name="killed", title="A replica was killed by a signal",
        why="A process outside the job sent it a signal, or the kernel did because the whole machine ran "
        "out of memory.",
        fix="dmesg on its node tells of the kernel. It comes back by its restart policy.",
    ),
    Topic(
        code="LIFE404", name="disk-full", title="A disk is full",
        why="Logs, samples, checkpoints or traces found no room.",
        fix="paceline prune deletes jobs that ended some time ago. Checkpoints go on once there is room.",
    ),
    Topic(
        code="LIFE405", name="evicted", title="A node had no room left and evicted the pod",
        why="Its memory or disk ran out. Pods that use more than they request go first.",
        fix="Request what is really used; requests equal to limits are evicted last.",
    ),
    Topic(
        code="LIFE406", name="preempted", title="The pod had to make room for what has a higher priority",
        severity=Severity.WARNING,
        why="The scheduler removes pods of lower priority for one that fits nowhere else. A queue takes the "
        "quota of a whole job for another one that comes first.",
        fix="Nothing is to be done: it comes back where there is room, and goes on from the last checkpoint "
        "if its script has saved one. Such an end does not count as a restart.",
    ),
    Topic(
        code="LIFE407", name="node-lost", title="The node does not answer any more",
        why="It is down, cut off, or its kubelet hangs.",
        fix="Its replicas get a next attempt elsewhere after a minute, even when the old pod cannot be "
        "deleted.",
    ),
    Topic(
        code="LIFE408", name="removed", title="The pod was removed, and not by Paceline",
        why="kubectl delete, a drain of the node, or another controller.",
        fix="It gets a next attempt by itself.",
    ),
    Topic(
        code="LIFE409", name="orphaned", title="A replica ended itself because no supervisor watched it",
        why="Its supervisor was gone for a minute: a replica that no supervisor can end must not run for "
        "ever.",
        fix="paceline resume brings it back, from the last checkpoint if the script has saved one.",
    ),
    Topic(
        code="LIFE410", name="lost", title="A replica is gone for an unknown reason",
        why="Its process or pod vanished without an exit reason.",
        fix="It comes back by its restart policy; what it wrote last may tell.",
    ),
    Topic(
        code="LIFE411", name="failed", title="The job has failed, and only its own words say why",
        why="What happened is too long ago to be known, or of a kind that no rule knows.",
        fix="paceline describe and paceline logs show all that is kept.",
    ),
    Topic(
        code="LIFE412", name="restarting", title="The job comes back, and only its own words say from what",
        why="What happened is too long ago to be known, or of a kind that no rule knows.",
        fix="paceline describe and paceline logs show all that is kept.",
    ),
    Topic(
        code="LIFE413", name="crashed", title="A process crashed",
        why="Compiled code did what it may not: it used memory that is not its own (SIGSEGV, SIGBUS), gave "
        "up by itself (SIGABRT) or ran an instruction that this processor does not have (SIGILL).",
        fix="What it wrote last often says where. Packages built for each other's versions crash least.",
    ),
)  # fmt: skip

#: Names of the causes that keep a job from running.
STANDING = frozenset(topic.name for topic in TOPICS)
