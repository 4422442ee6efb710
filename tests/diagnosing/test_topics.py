"""The catalogue of causes: whatever a rule may yield is explained."""

from __future__ import annotations

import re
from pathlib import Path

from paceline import diagnosing
from paceline.diagnosing import topics
from paceline.model.jobs.obstacles import ObstacleKind
from paceline.model.jobs.statuses import ExitKind, JobPhase

SOURCES = sorted(Path(diagnosing.__file__).parent.glob("*.py"))


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [topic.code for topic in topics.TOPICS]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"LIFE\d{3}", code) for code in codes)
    names = [topic.name for topic in topics.TOPICS]
    assert len(names) == len(set(names))


def test_every_topic_explains_itself() -> None:
    for topic in topics.TOPICS:
        assert len(topic.title) < 80
        assert topic.why.endswith("."), topic
        assert topic.fix.endswith("."), topic


def test_whatever_a_rule_may_yield_has_a_topic() -> None:
    sources = [path.read_text() for path in SOURCES]
    written = {name for text in sources for name in re.findall(r'Cause\(\s*name="([\w-]+)"', text)}
    assert "no-room" in written
    others = {ExitKind.COMPLETED, ExitKind.ERROR, ExitKind.SIGNAL, ExitKind.DISRUPTED}
    ends = {str(kind) for kind in ExitKind} - others
    words = {"command-failed", "crashed", "killed", "evicted", "preempted", "node-lost", "removed"}
    phases = {str(JobPhase.FAILED), str(JobPhase.RESTARTING)}
    possible = written | ends | words | phases | {str(kind) for kind in ObstacleKind}
    assert possible == {topic.name for topic in topics.TOPICS}
