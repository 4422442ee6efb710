"""Twenty TFJobs as job files and back: every field comes back as it was, or is named as lost."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given, settings
from support.examples import examples

from paceline import specs
from paceline.agent.paceline_agent import environments
from paceline.errors import InvalidInput
from paceline.model import quantities
from paceline.model.jobs import job_specs
from paceline.rendering import manifests
from paceline.rendering.surroundings import AgentSetup, Surroundings
from paceline.specs.tfjob import tfjob_files

FILES = sorted(Path(__file__).with_name("tfjobs").glob("*.yaml"))
#: The same thing under other names, for the operator and for Paceline.
ROLES = {"master": "Chief", "chief": "Chief", "ps": "PS", "worker": "Worker", "evaluator": "Evaluator"}
#: What the API fills in where nothing is said.
DEFAULTS = {
    "suspend": False, "enableDynamicWorker": False, "protocol": "TCP", "successPolicy": "", "value": "",
    "nodeSelector": {}, "tolerations": [], "limits": {}, "requests": {}, "labels": {},
    "args": [], "nvidia.com/gpu": 0,
}  # fmt: skip
OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp")
OWN_VOLUMES = ("paceline", "paceline-config")
SLACK_SECONDS = 5
MARKED = {name: f"<{name}>" for name in job_specs.PLACEHOLDERS}

Tree = dict[str, Any]
Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Everything that is said; null says nothing, nor does an empty mapping or list."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    elif value is not None:
        yield path, value


def dotted(path: Path_) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def renamed(tfjob: Tree) -> Tree:
    """A TFJob with its roles by the names of today."""
    made = copy.deepcopy(tfjob)
    made["spec"]["tfReplicaSpecs"] = {
        ROLES[name.lower()]: each for name, each in made["spec"]["tfReplicaSpecs"].items()
    }
    return made


def without_agent(objects: list[Tree]) -> Tree:
    """A rendered TFJob as if there were no agent: what it is told stands where a TFJob has it."""
    _, config_map, tfjob = json.loads(json.dumps(objects))
    for name, replicas in tfjob["spec"]["tfReplicaSpecs"].items():
        told = json.loads(config_map["data"][f"{name.lower()}.json"])
        pod = replicas["template"]["spec"]
        (container,) = pod["containers"]
        container["command"] = [environments.fill(word, MARKED) for word in told["command"]]
        container["env"] = [
            {"name": key, "value": environments.fill(value, MARKED)}
            for key, value in told["environment"].items()
        ]
        for each, where in ((pod, "volumes"), (container, "volumeMounts")):
            each[where] = [one for one in each[where] if one["name"] not in OWN_VOLUMES]
        for key in (
            "initContainers",
            "automountServiceAccountToken",
            "enableServiceLinks",
            "securityContext",
        ):
            del pod[key]
        del container["securityContext"]
        container["ports"] = [each for each in container["ports"] if each["name"] != "metrics"]
        del replicas["template"]["metadata"]["annotations"]
        pod["terminationGracePeriodSeconds"] -= SLACK_SECONDS
    return dict(tfjob)


def expanded(text: str, environment: dict[str, str]) -> str:
    """What Kubernetes makes of a text."""
    parts = text.split("$$")
    for name, value in environment.items():
        parts = [part.replace(f"$({name})", value) for part in parts]
    return "$".join(parts)


def as_a_container_sees_it(tfjob: Tree) -> Tree:
    """A TFJob with ``$(NAME)`` filled in, args after the command, at the places that they have."""
    for replicas in tfjob["spec"]["tfReplicaSpecs"].values():
        if replicas.get("replicas") == 0:
            continue
        for container in replicas["template"]["spec"]["containers"]:
            known: dict[str, str] = {}
            for each in container.get("env") or []:
                if "valueFrom" not in each:
                    known[each["name"]] = expanded(str(each.get("value") or ""), known)
                    each["value"] = known[each["name"]]
            for key in ("command", "args"):
                if container.get(key):
                    container[key] = [expanded(word, known) for word in container[key]]
    return tfjob


def counterpart(original: Any, other: Any, path: Path_) -> Any:
    """What another TFJob says in the place of a leaf: things with names are found by these."""
    for depth, part in enumerate(path):
        if part == "args" and path[depth + 1 :]:
            return at(other, "command", len(original.get("command", ())) + int(path[depth + 1]))
        if isinstance(part, int) and isinstance(original, list):
            named = name_of(original[part])
            if named:
                other = next((each for each in other or () if name_of(each) == named), None)
            else:
                other = other[part] if other is not None and part < len(other) else None
        else:
            other = other.get(part) if isinstance(other, dict) else None
        original = original[part]
    return other


def name_of(each: Any) -> Any:
    return each.get("name") or (each.get("secretRef") or {}).get("name") if isinstance(each, dict) else None


def at(tree: Any, key: str, index: int) -> Any:
    there = (tree or {}).get(key) or []
    return there[index] if index < len(there) else None


def same(path: Path_, one: Any, other: Any) -> bool:
    if "resources" in path and other is not None:
        with contextlib.suppress(ValueError):
            return quantities.parse_quantity(one) == quantities.parse_quantity(other)
    is_default = path[-1] in DEFAULTS and one == DEFAULTS[path[-1]]
    return one == other or str(one) == other or (is_default and (other is None or one in ({}, [])))


def is_below(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


def check(tfjob: Tree) -> tuple[str, ...]:
    """Hold a TFJob against what becomes of it; return what is named as lost."""
    conversion = tfjob_files.convert_text(json.dumps(tfjob), "tfjob.yaml")
    spec = specs.parse_job(conversion.text).spec
    back = without_agent(manifests.rendered(spec, manifests.Target.TFJOB, Surroundings(namespace="other")))
    named = [
        re.sub(r"(?<=tfReplicaSpecs\.)\w+", lambda match: ROLES[match[0].lower()], note.partition(": ")[0])
        for note in conversion.lost
        if not note.endswith(("as well", "in TF_CONFIG too", "goes on without it)"))
        and ": nothing is said here" not in note
    ]
    original = as_a_container_sees_it(renamed(tfjob))
    silent = []
    for path, value in leaves(original):
        if path[0] == "status" or (path[0] == "metadata" and path[1] in OF_THE_SERVER):
            continue
        is_back = same(path, value, counterpart(original, back, path))
        if not is_back and not any(is_below(dotted(path), each) for each in named):
            silent.append((dotted(path), value, counterpart(original, back, path)))
    assert silent == [], conversion.lost
    places = [dotted(path) for path, _ in leaves(original)]
    assert [each for each in named if not any(is_below(place, each) for place in places)] == []
    return conversion.lost


def read(path: Path) -> Tree:
    return dict(yaml.safe_load(path.read_text()))


def test_there_are_twenty() -> None:
    assert len(FILES) == 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_field_comes_back_or_is_named(path: Path) -> None:
    check(read(path))


@pytest.mark.parametrize("agent_files", [None, "hub/paceline-agent:1"], ids=["copied", "mounted"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_second_time_nothing_is_lost(path: Path, agent_files: str | None) -> None:
    """What a job file can say, it says: as a TFJob of Paceline's own it loses only its namespace."""
    spec = specs.parse_job(tfjob_files.convert_text(path.read_text(), "tfjob.yaml").text).spec
    where = Surroundings(agent=AgentSetup(files=agent_files))
    objects = manifests.rendered(spec, manifests.Target.TFJOB, where)
    again = tfjob_files.convert_text(json.dumps({"kind": "List", "items": objects}), "list.json")
    assert [each.partition(": ")[0] for each in again.lost] == ["metadata.namespace"]
    assert manifests.rendered(specs.parse_job(again.text).spec, manifests.Target.TFJOB, where) == objects


def nodes(value: Any) -> Iterator[Tree]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from nodes(each)


def others(value: Any) -> list[Any]:
    """Values of the same type, for Kubernetes refuses all others."""
    match value:
        case bool():
            return [not value]
        case int():
            return [0, value + 1]
        case str():
            return ["other", "$(A)$$", "{job}", "None", "2"]
    return [type(value)()]


@settings(max_examples=examples(100))
@given(st.data())
def test_whatever_is_changed_is_back_or_named_or_refused(data: st.DataObject) -> None:
    """A field more, one less, or with another value: anywhere, also in unexpected places."""
    tfjob = read(data.draw(st.sampled_from(FILES)))
    tfjob.pop("status", None)
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(list(nodes(tfjob))))
        key = data.draw(st.sampled_from(["unheardOf", *node]))
        if key not in node:
            node[key] = data.draw(st.sampled_from(["text", 3, True, {}, [], {"x": "y"}, ["x"]]))
        elif data.draw(st.booleans()):
            node[key] = data.draw(st.sampled_from(others(node[key])))
        else:
            del node[key]
    try:
        check(tfjob)
    except InvalidInput as error:
        refusal = error
    else:
        return
    # A name that a Service may not have is refused where the job is rendered again, which reads no file.
    assert re.match(r"tfjob\.yaml:1:\d+: |\S+ begins with a digit", refusal.message)
    said, *_ = refusal.message.splitlines()  # an excerpt of the file follows
    assert not re.search(r"[a-z]Error\b", said)
