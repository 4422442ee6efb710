"""The manifests that the project began with, to the letter: every defect by its code and line."""

from pathlib import Path

import pytest

from paceline import linting

SEEDS = Path(__file__).parent / "seeds"

#: Line by line as the seed has it; (line, code).
SCENE_1 = [
    (38, "K8S605"),  # namespace: {{ name }}
    (63, "K8S601"),  # harborsecret'
    (65, "K8S103"),  # node labels CASE, INDEX, SCENCE
    (77, "K8S401"),  # SCENCE
    (83, "K8S604"),  # image without tag
    (84, "K8S202"),  # no memory limit
    (85, "K8S201"),  # requests without limits
    (87, "K8S203"),  # 300m
    (90, "K8S603"),  # wget -r ... sh ./run.sh
    (113, "K8S501"),  # extensions/v1beta1
    (129, "K8S103"),
    (141, "K8S401"),
    (147, "K8S604"),
    (148, "K8S202"),
    (149, "K8S201"),
    (154, "K8S603"),
    (155, "K8S301"),  # restartPolicy: Always of a Deployment
]
SCENE_2 = [
    (38, "K8S605"),
    (63, "K8S601"),
    (65, "K8S103"),
    (77, "K8S401"),
    (87, "K8S604"),
    (88, "K8S202"),
    (89, "K8S201"),
    (91, "K8S203"),
    (94, "K8S603"),
    (117, "K8S501"),
    (133, "K8S103"),
    (145, "K8S401"),
    (155, "K8S604"),
    (156, "K8S202"),
    (157, "K8S201"),
    (162, "K8S603"),
    (163, "K8S301"),
]
SNIPPET = [(1, "K8S003"), (5, "K8S102"), (8, "K8S101")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("scene1.yaml", SCENE_1), ("scene2.yaml", SCENE_2), ("anti-affinity.yaml", SNIPPET)],
)
def test_every_defect_is_found_where_it_is(name: str, expected: list[tuple[int, str]]) -> None:
    text = (SEEDS / name).read_bytes()
    found = linting.lint_manifests(text, name)
    assert [(finding.position.line, finding.code) for finding in found if finding.position] == expected


@pytest.mark.parametrize(
    ("line", "code", "content"),
    [
        (63, "K8S601", "harborsecret'"),
        (77, "K8S401", '"SCENCE"'),
        (87, "K8S203", '"300m"'),
        (85, "K8S201", "requests:"),
        (113, "K8S501", "extensions/v1beta1"),
        (155, "K8S301", "restartPolicy: Always"),
    ],
)
def test_the_lines_hold_what_is_said(line: int, code: str, content: str) -> None:
    assert (line, code) in SCENE_1
    assert content in (SEEDS / "scene1.yaml").read_text(encoding="utf-8").splitlines()[line - 1]


def test_the_messages_speak_of_the_file_as_it_is_written() -> None:
    found = linting.lint_manifests((SEEDS / "scene1.yaml").read_bytes(), "scene1.yaml")
    messages = {finding.code: finding.message for finding in found}
    assert "SCENE" in messages["K8S401"]
    assert "{{ name }}" in messages["K8S605"]
    assert "registry.vivo.xyz:4443/bigdata_release/tensorflow1.3.0" in messages["K8S604"]
    assert "no partner" in messages["K8S601"]
    assert "1.16" in messages["K8S501"]
    assert all(finding.message.isprintable() for finding in found)


def test_the_snippet_says_how_to_spread() -> None:
    found = linting.lint_manifests((SEEDS / "anti-affinity.yaml").read_bytes())
    finding = next(finding for finding in found if finding.code == "K8S101")
    assert "tf-replica-type NotIn [ps]" in finding.message
    assert "In" in finding.fix
    assert "job" in finding.fix
