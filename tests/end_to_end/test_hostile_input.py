"""Whatever stands in a job file reaches the command byte by byte, or is refused; no shell ever sees it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

import paceline
from paceline import specs
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.rendering import manifests, previews
from paceline.rendering.surroundings import Surroundings
from paceline.specs.job_file import custom_resources

SOURCES = Path(paceline.__file__).parent
SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
#: What the child was started with, as the kernel has it.
PROGRAM = """
import json, os, sys
words = [os.fsencode(word).hex() for word in sys.argv[2:]]
environment = {key.decode(): value.hex() for key, value in os.environb.items() if key.startswith(b"X_")}
open(sys.argv[1], "w").write(json.dumps([words, environment]))
"""

evil = st.sampled_from(
    [
        "",
        " ",
        "-",
        "--",
        "'",
        '"',
        "\\",
        "\n",
        "\r\n",
        "\t",
        "`id`",
        "$(id)",
        "$(HOME)",
        "$$(HOME)",
        "${HOME}",
        "$HOME",
        "$",
        "$$",
        "%s",
        "%n",
        "&& reboot",
        "; rm -rf /",
        "| cat",
        "> /tmp/x",
        "{job}",
        "{{job}}",
        "${job}",
        "{worker_hosts}",
        "{{{index}}}",
        "{}",
        "*",
        "~",
        "!!python/object:os.system",
        "&a",
        "*a",
        "<<",
        "---",
        "...",
        "# no comment",
        "null",
        "no",
        "1.10",
        "0x1F",
        "=",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x1b[31m",
        "\x07",
        "\u202e",
        "e\u0301",
        "\U0001f600",
        "../../etc/passwd",
        "a=b",
        "@file",
        "\x7f",
    ]
)
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
texts = st.lists(evil | plain, max_size=4).map("".join)


def through(spec: JobSpec) -> tuple[list[bytes], dict[str, bytes]]:
    """What a real child of a real agent sees of a job that went through a file and a config map."""
    again = specs.parse_job(specs.dump_job(spec)).spec
    assert again == spec
    assert custom_resources.job_spec(json.loads(json.dumps(custom_resources.resource(spec, "n")))) == spec
    made = manifests.rendered(again, manifests.Target.PODS, Surroundings())
    (data,) = (each["data"] for each in json.loads(json.dumps(made)) if each["kind"] == "ConfigMap")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("cluster.json", "worker.json"):
            (folder / part).write_text(data[part], encoding="utf-8")
        files = {key: str(folder / key) for key in ("spool", "exit", "reports")}
        own = {"index": 0, "attempt": 1, **files}
        told = json.loads(data["worker.json"])
        own["command"] = [*told["command"][:5], str(folder / "seen"), *told["command"][5:]]
        (folder / "own.json").write_text(json.dumps(own))
        line = [sys.executable, "-I", "-S", str(SOURCES / "agent" / "agent.py")]
        done = subprocess.run(
            [*line, *(str(folder / f"{part}.json") for part in ("cluster", "worker", "own"))],
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        words, environment = json.loads((folder / "seen").read_text())
    seen = {key: bytes.fromhex(value) for key, value in environment.items()}
    return [bytes.fromhex(word) for word in words], seen


def job(words: list[str], environment: dict[str, str]) -> JobSpec:
    child = (sys.executable, "-I", "-S", "-c", PROGRAM)
    return JobSpec(
        name="hostile",
        image="i",
        command=(*child, *map(previews.literal, words)),
        environment={key: previews.literal(value) for key, value in environment.items()},
        roles=(RoleSpec(role=Role.WORKER),),
    )


@settings(max_examples=examples(8))
@given(
    st.lists(texts, max_size=40),
    st.dictionaries(st.from_regex("X_[A-Za-z0-9_]{0,5}", fullmatch=True), texts),
)
def test_words_and_variables_arrive_byte_by_byte(words: list[str], environment: dict[str, str]) -> None:
    seen_words, seen_environment = through(job(words, environment))
    assert seen_words == [word.encode() for word in words]
    assert seen_environment == {key: value.encode() for key, value in environment.items()}


def test_long_ones_arrive_too() -> None:
    long = "\u00e9 $(x)\n" * 15_750
    assert len(long.encode()) == 126_000
    seen_words, seen_environment = through(job([long], {"X_LONG": long}))
    assert (seen_words, seen_environment) == ([long.encode()], {"X_LONG": long.encode()})


def document(**fields: Any) -> str:
    spec = {"image": "i", "command": ["x"], "roles": {"worker": {}}}
    metadata = fields.pop("metadata", {"name": "hostile"})
    return json.dumps(
        {
            "apiVersion": "paceline.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": metadata,
            "spec": {**spec, **fields},
        }
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"environment": {"BIG": "x" * 200_000}}, "spec.environment.BIG: the text has 200000 bytes"),
        ({"command": ["x", "y" * 200_000]}, r"spec.command\[1\]: the text has 200000 bytes"),
        ({"environment": {"BIG": "x" * (1 << 20)}}, r"the limit is 1048576"),
        ({"environment": {"NUL": "a\0b"}}, r"spec.environment.NUL: the character '\\x00' cannot stand"),
        ({"environment": {"A=B": "c"}}, r"is not a variable's name"),
        ({"environment": {"A\nB": "c"}}, r"is not a variable's name"),
        ({"metadata": {"name": "x; rm -rf /"}}, r"metadata.name"),
        ({"metadata": {"name": "../../etc"}}, r"metadata.name"),
        ({"metadata": {"name": "a", "labels": {"a": "b\nc"}}}, r"is not a label's value"),
        ({"metadata": {"name": "a", "labels": {"a": "$(x)"}}}, r"is not a label's value"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_is_refused_at_its_place(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(specs.DocumentError, match=says) as caught:
        specs.parse_job(document(**fields))
    assert len(caught.value.message) < 2000, "not all of a huge value is shown"


@given(st.text(max_size=70) | st.from_regex("[-a-zA-Z0-9_./]{1,70}", fullmatch=True), st.text(max_size=70))
def test_names_and_labels_that_pass_are_those_of_kubernetes(name: str, value: str) -> None:
    text = document(metadata={"name": name.replace("\ud800", ""), "labels": {"x": value}})
    try:
        spec = specs.parse_job(text).spec
    except specs.DocumentError:
        return
    assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", spec.name)
    assert len(spec.name) <= 52
    assert re.fullmatch("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", spec.labels["x"])
    assert len(spec.labels["x"]) <= 63


def test_depth_beyond_all_calls() -> None:
    deep: dict[str, Any] = {}
    for _ in range(9_000):
        deep = {"a": deep}
    resource = json.loads(document())
    resource["spec"]["training"] = deep
    with pytest.raises(paceline.errors.InvalidInput, match="deeper than 50 levels"):
        custom_resources.job_spec(resource)


def test_nothing_is_passed_through_a_shell() -> None:
    """No call of the whole platform starts one: only commands as lists of words."""
    found = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                found.append(f"{path}:{node.value.lineno}")
            if isinstance(node, ast.Attribute) and ast.unparse(node) in SHELLS:
                found.append(f"{path}:{node.lineno}")
    assert found == []
