"""What a script says of itself goes before what is seen of it."""

from __future__ import annotations

import json
import time

import pytest

from paceline.agent.paceline_agent import reports as agent_reports
from paceline.agent.paceline_agent import spools
from paceline.agent.paceline_agent.reports import Reports

SEEN = {"source": "instrumentation", "at": 1.0}


@pytest.fixture
def forwarded(tmp_path):
    """What of some reports arrives in the spool, a line after the other."""
    path = tmp_path / "reports"
    passed = []
    reports = Reports(str(path), passed.append)

    def forward(*lines):
        with path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        reports.forward(spools.Spool(str(tmp_path / "spool")), final=False)
        assert reports.rejected == 0
        return [(line["type"], line.get("source")) for line in passed]

    return forward


def test_what_is_seen_is_passed_on(forwarded):
    found = forwarded({"type": "step", **SEEN}, {"type": "instrumentation", "message": "hello", **SEEN})
    assert found == [("step", "instrumentation"), ("instrumentation", "instrumentation")]


def test_facts_are_passed_on(forwarded):
    fact = {"type": "fact", "name": "device_filters", "value": False, **SEEN}
    assert forwarded(fact) == [("fact", "instrumentation")]


def test_from_when_a_script_reports_its_steps_itself_they_are_not_counted_twice(forwarded):
    seen, own = {"type": "step", **SEEN}, {"type": "step", "at": 2.0}
    assert forwarded(seen) == [("step", "instrumentation")]
    assert forwarded(own, seen)[1:] == [("step", None)]
    assert forwarded(seen, {"type": "instrumentation", "message": "hello", **SEEN}, own)[2:] == [
        ("instrumentation", "instrumentation"),
        ("step", None),
    ]


def test_each_kind_is_judged_by_itself(forwarded):
    found = forwarded({"type": "evaluation", "at": 1.0, "auc": 0.7}, {"type": "step", **SEEN})
    assert found == [("evaluation", None), ("step", "instrumentation")]


def test_all_that_is_unread_at_the_end_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_reports, "REPORT_CHUNK_BYTES", 200)
    path, passed = tmp_path / "reports", []
    reports = Reports(str(path), passed.append)
    path.write_text(
        "".join(json.dumps({"type": "step", "at": 1.0, "step": each}) + "\n" for each in range(99))
    )
    with path.open("a") as file:
        file.write(json.dumps({"type": "step", "at": 1.0, "step": 99}))  # Its end was not written any more.
    reports.forward(spools.Spool(str(tmp_path / "spool")), final=True)
    assert [each["step"] for each in passed] == list(range(100))
    assert reports.rejected == 0


def test_what_is_wrong_with_reports_is_said_now_and_then(tmp_path):
    path, spool, at = tmp_path / "reports", tmp_path / "spool", time.time()
    passed = []
    reports = Reports(str(path), passed.append)
    writer = spools.Spool(str(spool))
    for number in range(120):
        with path.open("a") as file:
            file.write(json.dumps({"type": "step", "at": at, "step": f"{number} of 120", "steps": 1}) + "\n")
            file.write("" if number else "step 0\n")
        reports.forward(writer, final=False)
    lines = [json.loads(line) for line in spool.read_text().splitlines()]
    assert [line["message"] for line in lines if line["type"] == "misread"] == [
        'step is no number that it can be: "0 of 120"',
        'a line is no report: "step 0"',
        'step is no number that it can be: "9 of 120" (10 times so far)',
        'step is no number that it can be: "99 of 120" (100 times so far)',
    ]
    assert passed == [{"type": "step", "at": at, "steps": 1}] * 120
    assert reports.rejected == 1
