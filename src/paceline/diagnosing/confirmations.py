"""What a probe of a job says about the causes that rules have found: the experiment overrules the rules.

A probe is valid as long as neither the job's spec nor the placement of its replicas has changed since.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Cause, Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.runs import RESIZED
from paceline.model.measures.probes import Elasticity, PartVerdict, Probe
from paceline.model.measures.recordings import Recording
from paceline.probing import sayings

#: Causes that claim a bottleneck which a probe can test, and the knobs that test it.
_SAID = {
    "at-limit": (Knob.CPU, Knob.LINK),
    "compute-bound": (Knob.CPU,),
    "dense-update": (Knob.CPU,),
    "giant-variable": (Knob.CPU, Knob.LINK),
    "hot-ps": (Knob.CPU, Knob.LINK),
    "noisy-neighbour": (Knob.WEIGHT,),
    "ps-cpu-bound": (Knob.CPU,),
    "ps-network-bound": (Knob.LINK,),
    "shared-link": (Knob.LINK,),
    "skewed-shards": (Knob.CPU, Knob.LINK),
    "throttled": (Knob.CPU,),
    "uneven-placement": (Knob.CPU, Knob.LINK),
    "worker-link": (Knob.LINK,),
}
SILENT_SECONDS = Threshold(
    "confirmations.silent-seconds", 60.0, Unit.SECONDS,
    means="A probe that has been silent for this long does not go on: it was killed, and cuts nothing any "
    "more.",
)  # fmt: skip
UNDER_WAY = "a probe is under way, and how the job does now is what the probe does to it: look again soon"
#: The kinds of events after which a probe is no longer valid.
_CHANGES = (RESIZED, "scaled", "changed")


def newest(recording: Recording) -> Probe | None:
    """Return the newest probe that has ended and is still valid; None: there is none."""
    changed = [each.at for each in recording.events if each.kind in _CHANGES]
    changed += [each.done_at for each in recording.changes if each.done_at is not None]
    since = max(changed, default=0.0)
    held = [each for each in recording.probes if each.ended is not None and each.began_at >= since]
    return held[-1] if held else None


def is_under_way(case: Case) -> bool:
    """Whether a probe of a running job is under way, so that measurements show the probe's own effects.

    A probe that has been silent for `SILENT_SECONDS` counts as killed: it cuts nothing any more.
    """
    recording = case.recording
    if not recording.probes or recording.run.phase.is_final:
        return False
    last = recording.probes[-1]
    said = max((last.began_at, *(cut.until for cut in last.cuts)))
    return last.ended is None and recording.at - said < case.value(SILENT_SECONDS)


def confirmed(causes: Iterable[Cause], case: Case) -> list[Cause]:
    """Return causes with the evidence of the newest probe; a refuted cause gets the severity INFO."""
    probe = newest(case.recording)
    if probe is None:
        return list(causes)
    return [_confirmed(cause, probe, case) for cause in causes]


def _confirmed(cause: Cause, probe: Probe, case: Case) -> Cause:
    found = about(cause, probe, case)
    if not found or cause.is_past:
        return cause
    evidence = tuple(_evidence(each, probe) for each in found)
    binding = [each for each in found if each.verdict is PartVerdict.BINDS]
    if binding:
        return dataclasses.replace(cause, evidence=(*evidence, *cause.evidence))
    if all(each.verdict is PartVerdict.RESTS for each in found):
        what = f"{cause.what} An experiment says that this does not slow down the job."
        return dataclasses.replace(
            cause, what=what, severity=Severity.INFO, gain=None, evidence=(*evidence, *cause.evidence)
        )
    return cause


def about(cause: Cause, probe: Probe, case: Case) -> Sequence[Elasticity]:
    """Return the probe's elasticities of the parts that a cause claims to be the bottleneck."""
    knobs = _SAID.get(cause.name, ())
    hosts = {str(row.replica): row.host for row in case.recording.replicas}
    subjects = {*cause.subjects, *(hosts.get(each) for each in cause.subjects)}
    return [
        each for each in probe.elasticities if each.part.knob in knobs and subjects & set(each.part.targets)
    ]


def _evidence(elasticity: Elasticity, probe: Probe) -> Evidence:
    word = "confirmed by experiment" if elasticity.verdict is PartVerdict.BINDS else "by experiment"
    return Evidence(
        text=f"{word}: {elasticity.part.name}: {sayings.cost(elasticity)} "
        f"(elasticity {elasticity.value:.2f}, {elasticity.low:.2f} to {elasticity.high:.2f})",
        at=probe.began_at,
    )
