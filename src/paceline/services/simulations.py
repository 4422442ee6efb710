"""Jobs that do not run: a recording of what would be measured of them."""

from __future__ import annotations

import dataclasses

from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.model.runs import ReplicaRow, Run
from paceline.model.statuses import JobPhase, ReplicaPhase
from paceline.modelling import costs, measurements, simulations
from paceline.services import predictions
from paceline.services.predictions import Model
from paceline.specs import JobFile

#: By how much what a step asks for differs from step to step, as a share of it.
VARIATION = 0.5
NOTE = "simulated: no replica ran, and the loss is the last one of the job that it is like"


def recording(model: Model, job: JobFile, *, seconds: float, seed: int, at: float) -> Recording:
    """Return what would be measured of a job of the same model in its first seconds.

    Args:
        model: what steps cost.
        job: its file.
        seconds: how long it runs; at least 1.
        seed: of what is left to chance.
        at: when it is looked at (Unix seconds).

    Raises:
        InvalidInput: it differs in something of which the model does not know what it does.
    """
    layout = predictions.layout(model, job.spec)
    given = model.calibration.costs
    done = simulations.simulate(
        *costs.network(layout, given), seed=seed, seconds=seconds, variation=VARIATION
    )
    samples, steps = measurements.measurements(layout, given, done, start_at=at - seconds)
    losses = [each.loss for each in model.recording.steps if each.loss is not None]
    hosts = {ReplicaId(Role.PS, index): each.host for index, each in enumerate(layout.servers)}
    hosts |= {replica: each.host for each in layout.trainers for replica in each.replicas}
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
            ReplicaRow(replica=each, phase=ReplicaPhase.RUNNING, attempt=1, restarts=0, host=host)
            for each, host in hosts.items()
        ),
        samples=samples,
        steps=[dataclasses.replace(each, loss=losses[-1] if losses else None) for each in steps],
        facts=model.recording.facts,
        plan=predictions.plan(model, job.spec),
    )
