"""The page of ``paceline why``, and its document."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result
from support.filled_homes import fill

from paceline.model.causes import Cause, Evidence, Explanation
from paceline.model.statuses import JobPhase
from paceline.services.homes import Home
from paceline.surfaces.views import causes

FOUND = Explanation(
    job="clicks",
    summary="clicks is pending, for 3m12s",
    causes=(
        Cause(
            name="no-room",
            what="There is no room for all of it: 3 workers would fit now.",
            evidence=(
                Evidence(text="2 more worker: " + "too little CPU for 4 cores " * 5, at=1.8e9, count=12),
            ),
            next_steps=("spec.roles.worker.replicas: 3", "paceline fit job.yaml shows what is free"),
        ),
    ),
    unknown=("whether its nodes answer: nodes is forbidden",),
)


def test_the_page_fits_a_terminal() -> None:
    shown = causes.explanation(FOUND, say=lambda text: text.replace("paceline", "paceline -n ads"), width=80)
    assert shown.plain.splitlines() == [
        "clicks is pending, for 3m12s",
        "",
        "1. LIFE202 There is no room for all of it: 3 workers would fit now.",
        "   seen  2027-01-15T08:00:00Z 2 more worker: too little CPU for 4 cores too",
        "         little CPU for 4 cores too little CPU for 4 cores too little CPU for 4",
        "         cores too little CPU for 4 cores (12 times)",
        "   next  spec.roles.worker.replicas: 3",
        "   next  paceline -n ads fit job.yaml shows what is free",
        "",
        "unknown  whether its nodes answer: nodes is forbidden",
    ]


def test_a_job_that_succeeded_has_nothing_wrong(home: Home, paceline: Callable[..., Result]) -> None:
    fill(home, "clicks")
    result = paceline("why", "clicks")
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing is wrong: clicks has succeeded")
    assert "next: paceline describe clicks" in result.stderr


def test_the_document_is_for_programs(home: Home, paceline: Callable[..., Result]) -> None:
    fill(home, "clicks", phase=JobPhase.FAILED, message="nothing I know")
    document = json.loads(paceline("why", "clicks", "-o", "json").stdout)
    assert (document["kind"], document["job"], document["unknown"]) == ("Explanation", "clicks", [])
    (cause,) = document["causes"]
    assert set(cause) == {"code", "name", "what", "evidence", "next_steps", "is_past"}
    assert "nothing I know" in cause["what"]


def test_a_job_that_is_not_there(home: Home, paceline: Callable[..., Result]) -> None:
    fill(home, "clicks")
    result = paceline("why", "click")
    assert result.exit_code == 3
    assert "Did you mean clicks?" in result.stderr
