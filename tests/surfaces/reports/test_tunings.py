"""The page about a search for a better job file."""

from __future__ import annotations

import dataclasses
import re

import pytest
from support import cases, searches
from support.html_pages import EVIL, plots_of, read

pytest.importorskip("jinja2")


from paceline.diagnosing import diagnoses
from paceline.model.explanations.causes import Explanation
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.services.observing import recordings
from paceline.surfaces.reports import tunings


def first() -> tuple[Recording, Explanation]:
    loads = {
        "ps-0": cases.SERVER, "ps-1": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER,
    }  # fmt: skip
    made = cases.recording(loads, phase=JobPhase.STOPPED)
    return made, diagnoses.diagnose(made, recordings.situation(made))


def test_it_tells_the_gain_the_changes_the_trials_and_the_proof() -> None:
    html = tunings.page(searches.ENDED, *first())
    page = read(html)
    for text in (
        "8.2", "12 000", "1 500 before", "0.7010", "0.7012 before, after 45 000 examples",
        "1: dense-update", "5.0 to 9.0", "undone: no difference", "undone: ps-0 was killed: out of memory",
        "dense-update: Rare rows learn a little otherwise.", "It ended as all trials are made.",
        "lazy-adam", "Run in turn, once: 8.20 times",
    ):  # fmt: skip
        assert text in re.sub("[^\\S\n]", " ", page.text), text
    assert "trials" in plots_of(html)


def test_a_search_that_found_nothing_says_so() -> None:
    nothing = dataclasses.replace(searches.ENDED, trials=searches.ENDED.trials[:1], pairs=(), quality=None)
    page = read(tunings.page(nothing, *first()))
    assert "nothing was better than the job as it came" in page.text
    assert "All changes" not in page.text


def test_hostile_texts_are_text() -> None:
    evil = dataclasses.replace(searches.LAZY, name=EVIL, what=EVIL, risk=EVIL, basis=EVIL)
    trial = dataclasses.replace(searches.ENDED.trials[1], proposals=(evil,), source=searches.TUNED + EVIL)
    hostile = dataclasses.replace(
        searches.ENDED, job=EVIL, ended=EVIL, trials=(searches.ENDED.trials[0], trial)
    )
    page = read(tunings.page(hostile, *first()))
    assert "script" not in page.tags
    assert "\x1b" not in page.text


def test_the_numbers_for_programs() -> None:
    found = tunings.document(searches.ENDED, first()[1])
    assert found["kind"] == "TuningSummary"
    assert found["trials"] == 4
    assert found["factor"] == pytest.approx(8.2)
    assert found["primary_cause"] is None or isinstance(found["primary_cause"], str)
