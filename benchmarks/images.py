"""The images that ``make image`` builds: how large they are, and what they cost when a pod starts.

A job of one worker with an image that has Python is submitted to a real node: without an agent, with the
agent mounted from the image of its files, and with the agent copied by an init container from the operator's
image. The time ends with the first line that the command prints, by the clock of the kubelet, which is this
machine's. On a cold node the images of Paceline are not there: what it takes to unpack them is added, but no
network is in it, for they come from archives. Needs root, a node on this machine, and in the folder that
``PACELINE_IMAGES`` names the archives that ``benchmarks/image-archives FOLDER`` makes.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import tarfile
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from support import clusters, operator_processes
from support.kills import until
from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, reported
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role

#: The archives: of the base image, which is the image of the job, too, and of both images of Paceline.
BASE, OPERATOR, AGENT = "base", "paceline", "paceline-agent"
OPERATOR_MB, AGENT_MB = 250.0, 3.0
NO_AGENT, MOUNTED, COPIED = "no agent", "mounted", "copied"
ROUNDS, QUICK_ROUNDS = 6, 1
WARM_STARTS = 3
_NAME = "first-line"
_SECONDS = 600.0
_PIECE_BYTES = 1 << 20


def run(bench: Bench) -> list[Check]:
    """Weigh the images, then start pods, round by round."""
    folder, node = _archives(), _real_node()
    names = {each: _imported(folder / f"{each}.tar") for each in (BASE, OPERATOR, AGENT)}
    cases: dict[str, tuple[str, ...]] = {
        NO_AGENT: (),
        MOUNTED: ("--agent-image", names[OPERATOR], "--agent-files", names[AGENT]),
        COPIED: ("--agent-image", names[OPERATOR], "--agent-files", "none"),
    }
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS
    bench.plan(2 + rounds * len(cases))
    for image in (OPERATOR, AGENT):
        bench.repeat(f"size of {image}", lambda image=image: _size(folder, image))  # type: ignore[misc]
    for number in range(rounds):
        turn = list(cases)[number % len(cases) :] + list(cases)[: number % len(cases)]
        for case in turn:
            needed = {MOUNTED: (AGENT,), COPIED: (OPERATOR,)}.get(case, ())
            cold = [(names[each], folder / f"{each}.tar") for each in needed]
            bench.repeat(
                f"{case} {number}",
                lambda case=case, cold=cold: _starts(case, cases[case], names[BASE], node, cold),  # type: ignore[misc]
            )
    return _checks(bench.rows)


def _archives() -> Path:
    folder = Path(os.environ.get("PACELINE_IMAGES", ""))
    if not (folder / f"{OPERATOR}.tar").is_file():
        raise NotHere(
            "it needs archives of the images (benchmarks/image-archives FOLDER; PACELINE_IMAGES=FOLDER)"
        )
    if shutil.which("ctr") is None:
        raise NotHere("it needs a node on this machine whose containerd answers ctr")
    return folder


def _real_node() -> str:
    names = [
        each["metadata"]["name"]
        for each in clusters.objects("nodes")
        if "paceline.dev/hollow" not in each["metadata"]["labels"]
    ]
    if not names:
        raise NotHere("it needs a node that runs something, and all of this cluster are hollow")
    return str(names[0])


def _ctr(*arguments: str) -> None:
    command = ("ctr", "-n", "k8s.io", "images", *arguments)
    subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)


def _imported(archive: Path) -> str:
    """Bring an image to the node; return its name."""
    with tarfile.open(archive) as parts:
        (name,) = json.loads(_read(parts, "manifest.json"))[0]["RepoTags"]
    _ctr("import", str(archive))
    return str(name)


def _size(folder: Path, image: str) -> Row:
    """Return the bytes of an image's own layers: those that the base has not, as they are and compressed."""
    with tarfile.open(folder / f"{BASE}.tar") as parts:
        base = set(_layers(parts))
    plain = compressed = 0
    with tarfile.open(folder / f"{image}.tar") as parts:
        for digest, path in _layers(parts).items():
            if digest not in base:
                file = parts.extractfile(path)
                assert file is not None, f"{path} is a file"
                size, packed = _compressed(file)
                plain, compressed = plain + size, compressed + packed
    return {"image": image, "bytes": plain, "compressed_bytes": compressed}


def _layers(parts: tarfile.TarFile) -> Mapping[str, str]:
    """Return the path of each layer in an archive, by its digest."""
    (manifest,) = json.loads(_read(parts, "manifest.json"))
    digests = json.loads(_read(parts, manifest["Config"]))["rootfs"]["diff_ids"]
    return dict(zip(digests, manifest["Layers"], strict=True))


def _read(parts: tarfile.TarFile, name: str) -> bytes:
    file = parts.extractfile(name)
    assert file is not None, f"{name} is a file"
    return file.read()


def _compressed(file: IO[bytes]) -> tuple[int, int]:
    """Return how many bytes a file has, and how many as registries keep it."""
    packer, size, packed = zlib.compressobj(), 0, 0
    while piece := file.read(_PIECE_BYTES):
        size += len(piece)
        packed += len(packer.compress(piece))
    return size, packed + len(packer.flush())


def _starts(
    case: str, arguments: Sequence[str], image: str, node: str, cold: Sequence[tuple[str, Path]]
) -> Row:
    """Start a pod on a node without some images, and more pods on the node as it is then."""
    with operator_processes.acting(arguments=arguments):
        for name, _ in cold:
            _ctr("rm", "--sync", name)
        started = time.monotonic()
        for _, archive in cold:
            _ctr("import", str(archive))
        unpacking_seconds = time.monotonic() - started
        first, *others = (_first_line_seconds(image, node) for _ in range(1 + WARM_STARTS))
    return {"case": case, "cold_seconds": unpacking_seconds + first, "warm_seconds": others}


def _first_line_seconds(image: str, node: str) -> float:
    """Submit a job; return the seconds until its command has printed a line."""
    worker = RoleSpec(role=Role.WORKER, memory_bytes=64 << 20)
    spec = JobSpec(
        name=_NAME,
        image=image,
        command=("python3", "-c", "print('here')"),
        roles=(worker,),
        placement=PodPlacement(node_selector={"kubernetes.io/hostname": node}),
        termination_grace_seconds=1.0,
    )
    submitted = time.time()
    clusters.apply([clusters.resource(spec)])
    until(lambda: _phase() in ("succeeded", "failed"), seconds=_SECONDS)
    (pod,) = clusters.pods(_NAME)
    named = (pod["metadata"]["name"], "-n", clusters.NAMESPACE, "-c", "training")
    line = clusters.kubectl("logs", "--timestamps", *named).splitlines()[0]
    at, _, text = line.partition(" ")
    if text != "here":
        raise RuntimeError(f"the job printed {text!r}, as {_phase()}")
    clusters.clear()
    return datetime.datetime.fromisoformat(at).timestamp() - submitted


def _phase() -> str:
    found: Mapping[str, Any] = clusters.found("trainingjob", _NAME, "-n", clusters.NAMESPACE)
    return str((found.get("status") or {}).get("phase", ""))


def _checks(rows: Sequence[Row]) -> list[Check]:
    sizes = {row["image"]: row for row in rows if "image" in row}
    checks = [
        at_most(f"MB of {image} above its base", [sizes[image]["bytes"] / 1e6], limit)
        for image, limit in ((OPERATOR, OPERATOR_MB), (AGENT, AGENT_MB))
    ]
    checks += [
        reported(f"MB of {image} as it is pulled", [sizes[image]["compressed_bytes"] / 1e6])
        for image in (OPERATOR, AGENT)
    ]
    for node in ("cold", "warm"):
        checks += [
            reported(f"seconds until the first line, {case}, {node} node", seconds)
            for case, seconds in _seconds(rows, node).items()
        ]
    return checks


def _seconds(rows: Sequence[Row], node: str) -> dict[str, list[float]]:
    """Return the seconds of each case; of warm nodes the median of each round."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if "case" in row:
            seconds = sorted(row["warm_seconds"])[WARM_STARTS // 2] if node == "warm" else row["cold_seconds"]
            found.setdefault(row["case"], []).append(seconds)
    return found


def draw(result: Result, path: Path) -> None:
    """Draw the seconds until the first line of each case, on cold and on warm nodes."""
    groups = {
        f"{case}, {node}": seconds
        for node in ("warm", "cold")
        for case, seconds in _seconds(result.rows, node).items()
    }
    plots.strips(path, groups, label="seconds", title="From submit to the first line of a pod")
