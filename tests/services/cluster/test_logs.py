"""The output of pods is read on from any place, also where lines were written at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from paceline.engines.kubernetes.clusters import OutputLine
from paceline.engines.local.folders import RunFolder
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster.logs import PodReader
from paceline.services.logs import LogSelection, Positions

PS, WORKER = (ReplicaId(Role.PS, 0), 1), (ReplicaId(Role.WORKER, 0), 1)


class Pods:
    """Pods that have printed something, and a folder with what is kept of those that are gone."""

    def __init__(self, folder: Path) -> None:
        self.kept = RunFolder(folder)
        self.kept.create()
        self.outputs: dict[str, list[OutputLine]] = {"worker": []}

    def reader(self, behind: Positions | None = None, tail: int | None = None) -> PodReader:
        wanted = LogSelection(behind=behind, tail=tail)
        return PodReader(self.attempts, self.read, self.kept, wanted, lambda: 1e9)

    def attempts(self) -> list[tuple[tuple[ReplicaId, int], str]]:
        return [(WORKER if name == "worker" else PS, name) for name in self.outputs]

    def read(self, pod: str, tail: int | None, old: int | None) -> Sequence[OutputLine]:
        return self.outputs[pod][len(self.outputs[pod]) - tail if tail is not None else 0 :]

    def print(self, *texts: str, at: str) -> None:
        self.outputs["worker"] += [OutputLine(at, text) for text in texts]


@pytest.fixture
def pods(tmp_path: Path) -> Pods:
    return Pods(tmp_path / "run")


def test_lines_of_one_moment_are_told_apart(pods: Pods) -> None:
    pods.print("a", "b", at="2027-01-15T08:00:00Z")
    reader = pods.reader()
    assert [line.text for line in reader.fresh(ended=False)] == ["a", "b"]
    pods.print("b", at="2027-01-15T08:00:00Z")
    pods.print("c", at="2027-01-15T08:00:01Z")
    again = pods.reader(reader.positions)
    assert [line.text for line in reader.fresh(ended=False)] == ["b", "c"]
    assert [line.text for line in again.fresh(ended=False)] == ["b", "c"]
    assert reader.positions == again.positions
    assert list(pods.reader(again.positions).fresh(ended=True)) == []


def test_every_place_is_one_to_go_on_from(pods: Pods) -> None:
    pods.print("a", "b", at="2027-01-15T08:00:00Z")
    pods.print("c", "d", at="2027-01-15T08:00:01Z")
    pods.kept.log(*PS).write_text("1\n2\n")
    every = ["1", "2", "a", "b", "c", "d"]
    for count in range(len(every) + 1):
        reader = pods.reader()
        found = reader.fresh(ended=False)
        seen = [next(found).text for _ in range(count)]
        rest = [line.text for line in pods.reader(reader.positions).fresh(ended=True)]
        assert seen + rest == every, count


def test_what_was_read_of_a_pod_is_not_read_again_when_it_is_gone(pods: Pods) -> None:
    pods.print("a", at="2027-01-15T08:00:00Z")
    reader = pods.reader()
    list(reader.fresh(ended=False))
    del pods.outputs["worker"]
    pods.kept.log(*WORKER).write_text("a\n")
    assert list(pods.reader(reader.positions).fresh(ended=True)) == []


def test_the_last_lines_first_and_then_all(pods: Pods) -> None:
    pods.print("a", "b", at="2027-01-15T08:00:00Z")
    reader = pods.reader(tail=1)
    assert [line.text for line in reader.fresh(ended=False)] == ["b"]
    pods.print("c", at="2027-01-15T08:00:01Z")
    assert [line.text for line in reader.fresh(ended=False)] == ["c"]


def test_none_of_what_is_there(pods: Pods) -> None:
    pods.print("a", "b", at="2027-01-15T08:00:00Z")
    reader = pods.reader(tail=0)
    assert list(reader.fresh(ended=False)) == []
    pods.print("c", at="2027-01-15T08:00:01Z")
    assert [line.text for line in pods.reader(reader.positions).fresh(ended=True)] == ["c"]
    assert [line.text for line in reader.fresh(ended=False)] == ["c"]


@pytest.mark.parametrize("tail", [None, 1])
def test_a_bar_of_progress_is_read_when_its_line_ends(pods: Pods, tail: int | None) -> None:
    pods.outputs["worker"] = [OutputLine("2027-01-15T08:00:00Z", "1/3\r2/3", has_ended=False)]
    reader = pods.reader(tail=tail)
    assert list(reader.fresh(ended=False)) == []
    pods.outputs["worker"] = [OutputLine("2027-01-15T08:00:00Z", "1/3\r2/3\r3/3\r")]
    pods.print("", "done", at="2027-01-15T08:00:01Z")
    assert [line.text for line in reader.fresh(ended=False)] == ["1/3", "2/3", "3/3", "", "done"]


def test_a_line_without_an_end_is_the_last_one(pods: Pods) -> None:
    pods.outputs["worker"] = [OutputLine("2027-01-15T08:00:00Z", "Killed", has_ended=False)]
    assert [line.text for line in pods.reader().fresh(ended=True)] == ["Killed"]
