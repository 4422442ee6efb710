"""Parameter servers on which the script has no variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.samples import Sample
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.variables import cures, variable_devices
from paceline.model.words import listed

LEAST_BYTES_PER_SECOND = Threshold(
    "unused-servers.least-bytes-per-second", 2000.0, Unit.BYTES_PER_SECOND,
    means="A parameter server that has nothing to do moves at most this. A session that asks whether a "
    "server is there moves some hundred bytes a second.",
)  # fmt: skip
WORKING_CORES = Threshold(
    "unused-servers.working-cores", 0.3, Unit.CORES,
    means="A trainer that uses at least this many cores trains.",
)  # fmt: skip
RESTING_CORES = Threshold(
    "unused-servers.resting-cores", 0.1, Unit.CORES,
    means="A parameter server that uses more cores than this works.",
)  # fmt: skip

TOPIC = Topic(
    code="PS005",
    name="no-variables-on-ps",
    title="The parameter servers hold no variable",
    severity=Severity.WARNING,
    why="A script puts a variable on a parameter server by a device: that of replica_device_setter, around "
    "the whole model. Where it makes none, makes one and does not use it, or names a worker, the variables "
    "are with each worker. Then the workers share nothing: each trains a model of its own, or waits for ever "
    "for the first one to fill variables that it does not see.",
    fix="In the script: with tf.device(tf.train.replica_device_setter(cluster=cluster)): around all that "
    "makes variables.",
    risk="What was trained so far is what one worker alone has learned.",
)


@rule(TOPIC, needs=(), explains=("too-many-ps", "idle-workers", "waiting-at-start"))
def no_variables_on_ps(case: Case) -> Iterator[Hit]:
    """Jobs whose variables are all on trainers, or whose servers do nothing while trainers work."""
    if not case.servers:
        return
    plan = case.recording.plan
    known = plan is not None and variable_devices.are_known(plan.variables)
    seen = _placed_elsewhere(case) if known else _without_traffic(case)
    if seen is None:
        return
    names = [str(each.replica) for each in case.servers]
    holds = "holds" if len(names) == 1 else "hold"
    yield Hit(
        what=f"{listed(names)} {holds} no variable: they are all with the trainers."
        if known
        else f"{listed(names)} {'exchanges' if len(names) == 1 else 'exchange'} nothing with trainers that "
        f"work: it looks as if {'it' if len(names) == 1 else 'they'} held no variable.",
        subjects=(*names, *(str(each.replica) for each in case.trainers)),
        evidence=seen,
        changes=trainings.cured(case, cures.UNPLACED),
        next_steps=(
            "in your script: with tf.device(tf.train.replica_device_setter(cluster=cluster)): around the "
            "model; with ParameterServerStrategy: with strategy.scope():",
            f"paceline plan {case.recording.run.name} shows the variables",
        ),
    )


def _placed_elsewhere(case: Case) -> tuple[Evidence, ...] | None:
    """Return the evidence that all variables are elsewhere; None: at least one may be on a server."""
    plan = case.recording.plan
    variables = plan.variables if plan else ()
    if len(variable_devices.elsewhere(variables)) < len(variables):
        return None
    size = quantities.format_bytes(sum(each.memory_bytes for each in variables))
    devices = listed(dict.fromkeys(device for each in variables for device in each.devices))
    return (
        Evidence(
            text=f"TensorFlow has {listed(each.name for each in variables)} ({size} in all) on: {devices}",
            sources=(EvidenceSource(what="variables", field="devices", count=len(variables)),),
        ),
    )


def _without_traffic(case: Case) -> tuple[Evidence, ...] | None:
    """Return the evidence that nothing moves although trainers work; None: it does, or it is not measured."""
    if not silences.has_begun(case) or needs.NETWORK.lacks(case) or needs.CPU.lacks(case):
        return None
    moved = [_bytes_per_second(case.histories.get(server.replica, ())) for server in case.servers]
    used = [server.cpu_cores for server in case.servers]
    least, resting = case.value(LEAST_BYTES_PER_SECOND), case.value(RESTING_CORES)
    if any(speed is None or speed > least for speed in moved):
        return None
    if any(cores is None or cores > resting for cores in used):
        return None
    working_cores = case.value(WORKING_CORES)
    working = [trainer for trainer in case.trainers if _works(trainer, working_cores)]
    if not working:
        return None
    return (
        Evidence(
            text=f"all PS together move {sum(speed or 0.0 for speed in moved):,.0f} bytes a second, and use "
            f"{sum(cores or 0.0 for cores in used):.2f} cores",
            sources=(
                case.source("network_received_bytes", case.servers),
                case.source("cpu_cores", case.servers),
            ),
        ),
        Evidence(
            text=f"{listed(trainer.replica for trainer in working)} use "
            f"{sum(trainer.cpu_cores or 0.0 for trainer in working):.2f} cores",
            sources=(case.source("cpu_cores", working),),
        ),
    )


def _bytes_per_second(samples: Sequence[Sample]) -> float | None:
    """Return a server's mean traffic over all its samples: long steps may move nothing for a while."""
    received = rates.rate(samples, lambda each: each.network_received_bytes)
    sent = rates.rate(samples, lambda each: each.network_sent_bytes)
    return rates.total((received, sent))


def _works(trainer: ReplicaSnapshot, working_cores: float) -> bool:
    return bool(trainer.steps_per_second) or (trainer.cpu_cores or 0.0) >= working_cores
