"""Changes the limits of running replicas on this machine: checks, and requests to the supervisor."""

from __future__ import annotations

import time

from paceline import specs
from paceline.control import resizings
from paceline.control.resizings import Resize
from paceline.engines.local import folders, layouts, machines
from paceline.errors import Conflict, EngineError, WaitTimeout
from paceline.model import quantities
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import run_registry
from paceline.services.local.run_registry import RunRegistry
from paceline.specs.edits import edits
from paceline.specs.yaml_text.problems import DocumentError

#: The kind of event that reports what the engine could not do.
FAILED = "engine-failed"
#: Supervisors check for requests twice a second, but one that was just killed is replaced first.
ANSWER_SECONDS = 60.0


def knobs(run: Run, machine: machines.Machine) -> frozenset[Knob]:
    """Return the settings of a run that can be adjusted on this machine."""
    found = {Knob.PAUSE}
    if machine.cgroups is not None:
        found |= {Knob.CPU, Knob.MEMORY, Knob.WEIGHT}
    if layouts.has_network(run.spec, machine):
        found.add(Knob.LINK)
    return frozenset(found)


def check(run: Run, folder: folders.RunFolder, resize: Resize, machine: machines.Machine) -> None:
    """Check that this machine, or the host of each replica, is large enough for a resize.

    Raises:
        EngineError: this machine cannot limit resources, or does not have as much.
    """
    if machine.cgroups is None:
        raise EngineError(f"nothing can be limited here, so nothing can be resized: {machine.lacks_cgroups}")
    plan = layouts.read(folder, run.spec.hosts).plan
    for replica in resizings.targets(run.spec, resize):
        host = plan.seat(replica).host
        has = (
            ("CPU", resize.cpu_cores, host.cpu_cores, float(len(machine.cores)), quantities.quantity_cores),
            ("of memory", resize.memory_bytes, host.memory_bytes, machine.memory_bytes, _bytes),
        )
        for what, asked, of_host, of_machine, shown in has:
            most = of_machine if of_host is None else of_host
            where = "this machine" if of_host is None else f"host {host.name}"
            if asked is not None and asked > most:
                raise EngineError(
                    f"{replica} cannot have {shown(asked)} {what}: {where} has {shown(most)}",
                    f"ask for at most {shown(most)}",
                )


def _bytes(amount: float) -> str:
    return quantities.format_bytes(amount)


def source_with(run: Run, resize: Resize) -> str:
    """Return the job file of a run with the sizes that its replicas have after a resize.

    A file that cannot be edited, for example because of YAML aliases, is written again from the spec.
    """
    try:
        return edits.edited(specs.source_of(run), resizings.changes(run.spec, resize))
    except DocumentError:
        return specs.dump_job(resizings.resized(run.spec, resize))


def ask(registry: RunRegistry, run: Run, request: str, kind: str) -> float:
    """Send a request to the supervisor of a run, wait until it is done, and return when (Unix seconds).

    Args:
        registry: the runs of the home.
        run: the run.
        request: the request.
        kind: the kind of event that reports its completion.

    Raises:
        Conflict: the run ends meanwhile.
        EngineError: the kernel refused the request.
        WaitTimeout: the supervisor does not answer.
    """
    last = max((number for number, _ in registry.store.events(run.name)), default=0)
    registry.request(run, request)
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        happened = [event for _, event in registry.store.events(run.name, since_id=last)]
        failed = next((each for each in happened if each.kind == FAILED), None)
        if failed is not None:
            raise EngineError(failed.message)
        done = next((each for each in happened if each.kind == kind), None)
        if done is not None:
            return done.at
        phase = registry.get(run.name).phase
        if phase.is_final or phase is JobPhase.STOPPING:
            raise Conflict(f"{run.name} is {phase}: it can no longer be changed", f"paceline get {run.name}")
        time.sleep(run_registry.POLL_SECONDS)
    raise WaitTimeout(
        f"the supervisor of {run.name} has not answered for {ANSWER_SECONDS:g} s", f"paceline get {run.name}"
    )
