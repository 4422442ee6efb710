"""Trainers wait for storage: their examples arrive more slowly than they could train on them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from paceline.diagnosing import confirmations, needs, pressures, trainings
from paceline.diagnosing.cases import Case, once
from paceline.diagnosing.inputs import between_steps, readings
from paceline.diagnosing.inputs.between_steps import BetweenStepsActivity
from paceline.diagnosing.inputs.readings import InputBoundJob
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import PartVerdict

TOPIC = Topic(
    code="INP001",
    name="slow-storage",
    title="Trainers wait for storage",
    severity=Severity.WARNING,
    why="Each batch is read before it is trained. If all trainers wait for their batches and their cores "
    "rest meanwhile, the disk, the file system or the way to it does not give them more: neither more cores "
    "nor more servers help, and more workers share the same storage.",
    fix="Keep copies of remote files near the trainers, read fewer bytes for an example, or get faster "
    "storage.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def slow_storage(case: Case) -> Iterator[Hit]:
    """Most trainers wait for input, and their cores rest meanwhile."""
    reading = storage_bound(case)
    if reading is None:
        return
    resting = readings.most(case, reading, decode=False)
    hit = readings.hit(
        case,
        reading,
        resting,
        "rest",
        what=f"Trainers wait for {_storage(case)}: {reading.share:.0%} of their time they have no examples, "
        "and their cores rest.",
        next_steps=_ways(case),
    )
    disks = pressures.evidence(case, pressures.DISKS, reading.trainers)
    yield dataclasses.replace(hit, evidence=(*hit.evidence, *disks, *_probed(case)))


@once
def storage_bound(case: Case) -> InputBoundJob | None:
    """Return the trainers that wait for what they read their input from; None: most do not."""
    reading = readings.find(case, case.value(readings.INPUT_BOUND))
    if reading is None or not readings.most(case, reading, decode=False):
        return None
    # A script that feeds its batches may compute or sleep between its steps: then storage is not the cause.
    other = (BetweenStepsActivity.COMPUTING, BetweenStepsActivity.RESTING)
    return None if any(between_steps.most(case, reading, what) for what in other) else reading


def is_shared(case: Case) -> bool | None:
    """Return whether trainers take from each other what storage delivers; None: no probe has shown it.

    A probe pauses a trainer. If storage is shared, the others get more meanwhile, and the rate stays. A job
    that did not wait for input then had another reason to be as fast with one trainer less.
    """
    probe = confirmations.newest(case.recording)
    if probe is None or (probe.input_wait_share or 0.0) < case.value(readings.INPUT_BOUND):
        return None
    verdicts = {each.verdict for each in probe.elasticities if each.part.knob is Knob.PAUSE}
    if PartVerdict.RESTS in verdicts:
        return True
    return False if PartVerdict.BINDS in verdicts else None


def _probed(case: Case) -> Iterator[Evidence]:
    probe = confirmations.newest(case.recording)
    if probe is not None and is_shared(case):
        said = "by experiment: a trainer paused, and the rate stayed: they share what storage delivers"
        yield Evidence(text=said, at=probe.began_at)


#: The next step that makes batches while steps run.
_AHEAD = (
    "DataLoader(num_workers=2, persistent_workers=True): so many processes read ahead while a step runs, and "
    "wait for storage side by side"
)


#: The scheme of a URL and its server, without the name and the password that may stand before it.
_SERVER = re.compile(r"\b([a-z][a-z0-9+.]{1,15})://(?:[^/@\s]{0,300}@)?([^/@\s'\"]{1,300})")
#: The schemes of storage: a command may also name servers of other kinds.
_STORES = ("hdfs", "viewfs", "webhdfs", "s3", "s3a", "gs", "abfs", "abfss", "oss", "cosn")
#: How to find out what the storage itself gives, by the scheme of its URLs; that of local files is "".
_MEASURED = {
    "": "faster storage, or files on several disks; measure it: dd if=FILE of=/dev/null bs=1M",
    "hdfs": "a faster HDFS; measure it where a worker runs: time hdfs dfs -cat FILE > /dev/null; hdfs fsck "
    "FILE -files -blocks -locations says which data nodes have it, hdfs dfs -setrep 3 FILE puts it on more",
    "s3": "a store that is nearer or faster; measure it where a worker runs: time aws s3 cp FILE - "
    "> /dev/null",
}
_ELSEWHERE = "a server that is nearer or faster; measure it where a worker runs: time curl -so /dev/null URL"


def _servers(case: Case) -> dict[str, str]:
    """Return the scheme of each server that the job file names for its input: ``hdfs://namenode:8020``."""
    trained = trainings.section(case, "inputs").get("train") or ()
    urls = map(_SERVER.search, [trained] if isinstance(trained, str) else map(str, trained))
    words = (
        word for role in case.spec.roles if role.role.trains for word in role.command or case.spec.command
    )
    named = (url for url in map(_SERVER.search, words) if url is not None and url[1] in _STORES)
    return {f"{url[1]}://{url[2]}": url[1] for url in (*urls, *named) if url is not None}


def _storage(case: Case) -> str:
    servers = _servers(case)
    return f"storage ({', '.join(servers)})" if servers else "storage"


def _ways(case: Case) -> tuple[str, ...]:
    cache = "spec.training.inputs.cache.folder: a folder of a fast disk keeps copies of remote files"
    schemes = dict.fromkeys(_servers(case).values()) or {"": None}
    ways = (
        "fewer bytes for an example: Parquet in place of CSV or TFRecord",
        *(_MEASURED.get("s3" if scheme == "s3a" else scheme, _ELSEWHERE) for scheme in schemes),
    )
    if readings.is_loaded(case):
        return (_AHEAD, *ways)
    return (
        ways
        if not trainings.by_library(case) or trainings.section(case, "inputs").get("cache")
        else (cache, *ways)
    )
