"""Simulates jobs: returns a recording of what would be measured of a job if it ran."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.runs import ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import costs, measurements, simulations
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.simulations import Incident
from paceline.services.studying import predictions
from paceline.services.studying.predictions import SpeedModel
from paceline.specs import JobFile
from paceline.specs.edits import edits

#: How much the work of a step varies from step to step, as a share of it.
VARIATION = 0.5
NOTE = "simulated: no replica ran, and the loss is the last one of the job that it is like"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScene:
    """The machines that a simulated job runs on, and the incidents that happen there.

    Attributes:
        apart: whether each of its hosts is a machine of its own; else they share the measured machine.
        incidents: stragglers, narrow links, slow storage, PS that stand still.
        input_examples_per_second: the most that each trainer can read; None: as measured.
    """

    apart: bool = False
    incidents: tuple[Incident, ...] = ()
    input_examples_per_second: float | None = None


PLAIN = SimulatedScene()


def on_hosts(job: JobFile, file: str) -> JobFile:
    """Return a job with its hosts replaced by the emulated hosts that a file lists (YAML or JSON).

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file cannot be read, or lists no valid hosts.
    """
    hosts = specs.load_plain(file, "a file of hosts is a list: - {name: host-0, cpu: 8, bandwidth: 10G}")
    if isinstance(hosts, dict):
        hosts = hosts.get("hosts")
    if not isinstance(hosts, list) or not hosts:
        raise InvalidInput(f"{file} lists no hosts", "- {name: host-0, cpu: 8, bandwidth: 10G}")
    try:
        return specs.parse_job(edits.edited(job.text, [FieldChange(path=("spec", "hosts"), value=hosts)]))
    except specs.DocumentError as error:
        raise InvalidInput(f"the hosts in {file} are wrong: {error.problems[0].message}") from error


def incident(text: str) -> Incident:
    """Return the incident that a text of the form ``SECONDS NAME TIMES`` describes.

    Raises:
        InvalidInput: the text has another form.
    """
    first, _, rest = text.strip().partition(" ")
    name, _, last = rest.rpartition(" ")
    try:
        at, times = float(first), float(last)
    except ValueError:
        at = times = math.nan
    if not (name and 0 <= at < math.inf and 0 <= times < math.inf):
        raise InvalidInput(
            f"{text!r} does not say what happens when: SECONDS NAME TIMES",
            "write it as '30 cores of ps-0 0.2': from second 30 on, 0.2 times the cores",
        )
    return Incident(at=at, of=name.strip(), times=times)


def recording(
    model: SpeedModel, job: JobFile, *, seconds: float, seed: int, at: float, scene: SimulatedScene = PLAIN
) -> Recording:
    """Return what would be measured of a job of the same model in its first seconds.

    Args:
        model: the speed model, with the costs of steps.
        job: the job file.
        seconds: how long the job runs; at least 1.
        seed: the seed of the random numbers.
        at: the time of the recording (Unix seconds).
        scene: where the job runs, and what happens there.

    Raises:
        InvalidInput: the job has a difference whose effect the model does not know, or an incident names
            something that does not exist.
    """
    layout = predictions.layout(model, job.spec, apart=scene.apart)
    if scene.input_examples_per_second is not None:
        brings = scene.input_examples_per_second / layout.batch_size
        layout = dataclasses.replace(layout, input_steps_per_second=brings)
    given = model.calibration.costs
    resources, groups = costs.network(layout, given)
    limited = {resource.name for resource in resources if math.isfinite(resource.rate)}
    names = limited | {group.name for group in groups}
    changes = [
        placed for scene_incident in scene.incidents for placed in _placed(scene_incident, layout, names)
    ]
    done = simulations.simulate(
        resources, groups, seed=seed, seconds=seconds, variation=VARIATION, changes=changes
    )
    samples, steps = measurements.measurements(layout, given, done, start_at=at - seconds)
    losses = [report.loss for report in model.recording.steps if report.loss is not None]
    hosts = {ReplicaId(Role.PS, index): server.host for index, server in enumerate(layout.servers)}
    hosts |= {replica: group.host for group in layout.trainers for replica in group.replicas}
    return Recording(
        run=Run(
            name=job.spec.name,
            spec=job.spec,
            source=job.text,
            engine=model.recording.run.engine,
            directory="",
            submitted_at=at - seconds,
            phase=JobPhase.RUNNING,
            started_at=at - seconds,
            notes=(NOTE,),
        ),
        at=at,
        replicas=tuple(
            ReplicaRow(replica=replica, phase=ReplicaPhase.RUNNING, attempt=1, restarts=0, host=host)
            for replica, host in hosts.items()
        ),
        samples=samples,
        steps=[dataclasses.replace(report, loss=losses[-1] if losses else None) for report in steps],
        facts=model.recording.facts,
        plan=predictions.plan(model, job.spec),
    )


def _placed(incident: Incident, layout: ModelLayout, names: Collection[str]) -> Iterator[Incident]:
    """Yield an incident for each thing that its name stands for.

    A name stands for a resource or group of this name, for one trainer, or for the trainers of every host.
    """
    if incident.of in names:
        yield incident
        return
    members = [
        dataclasses.replace(incident, of=name, member=member)
        for trainers in layout.trainers
        for member, replica in enumerate(trainers.replicas)
        for name in names
        if name.endswith(trainers.name) and name.removesuffix(trainers.name) + str(replica) == incident.of
    ]
    everywhere = [
        dataclasses.replace(incident, of=name) for name in names if name.startswith(f"{incident.of} on ")
    ]
    if not members and not everywhere:
        replicas = [str(each) for trainers in layout.trainers for each in trainers.replicas]
        known = ", ".join(sorted({*names, *replicas}))
        raise InvalidInput(f"the simulated job has no part {incident.of!r}", f"its parts are {known}")
    yield from members or everywhere
