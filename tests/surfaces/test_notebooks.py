"""What notebooks show."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.filled_homes import fill

import paceline
from paceline.model.explanations.causes import Cause, Evidence, Explanation, FieldChange, Gain
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import TrialOutcome
from paceline.services.local import state_dirs
from paceline.surfaces import api, notebooks

RECORDED = Path(__file__).parents[2] / "benchmarks/diagnosis/recordings"
HOSTILE = "<script>alert(1)</script>\x1b[31m&\"'"
CAUSE = Cause(
    name="ps-cpu-bound", what=HOSTILE, evidence=(Evidence(text=HOSTILE),),
    changes=(FieldChange(path=("spec", HOSTILE), value=HOSTILE),), gain=Gain(low=1.5, high=2.0),
)  # fmt: skip
PROPOSAL = Proposal(
    name=HOSTILE, what=HOSTILE, changes=CAUSE.changes, gain=CAUSE.gain, basis=HOSTILE, risk=HOSTILE
)
EXPERIMENT = Experiment(
    name=HOSTILE, source="", base="", baseline="one", repeats=1, seconds=1.0,
    variants=(Variant(name="one", changes=()), Variant(name=HOSTILE, changes=())),
    done=(
        Repeat(variant="one", number=0, run="a", outcome=TrialOutcome(examples_per_second=(100.0,))),
        Repeat(variant=HOSTILE, number=0, run="b", outcome=TrialOutcome(examples_per_second=(300.0,))),
    ),
)  # fmt: skip


class Checked(HTMLParser):
    """Complains of what is not closed, or does not belong into a notebook."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "style", "link", "img")
        assert {name for name, _ in attributes} <= {"style"}
        # The notebook's own colours for text and paper, dark or light.
        assert all("background:#" not in (value or "") for _, value in attributes)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "text",
    [
        notebooks.cause(CAUSE),
        notebooks.explanation(Explanation(job=HOSTILE, summary=HOSTILE, causes=(CAUSE,), unknown=(HOSTILE,))),
        notebooks.proposal(PROPOSAL),
        notebooks.Proposals([PROPOSAL])._repr_html_(),
        notebooks.Proposals(none="nothing is known: <its steps>")._repr_html_(),
        notebooks.experiment(EXPERIMENT),
        notebooks.complaint(HOSTILE, HOSTILE),
    ],
)
def test_everything_is_shown_as_text(text: str) -> None:
    Checked(text)
    assert "<script" not in text
    assert "\x1b" not in text


def test_an_experiment_has_its_variants() -> None:
    shown = notebooks.experiment(EXPERIMENT)
    assert "baseline" in shown
    assert "3.00" in shown


def test_a_job_that_was_recorded(home: state_dirs.Home) -> None:
    job = paceline.load(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet", name="clicks")
    shown = job._repr_html_()
    Checked(shown)
    assert "clicks" in shown
    assert "PS101" in shown
    assert "examples/s" in shown
    found = job.proposals()
    assert found[0].changes
    assert paceline.get("clicks").run.notes[-1].startswith("imported from ps-cpu-bound")
    with pytest.raises(paceline.InvalidInput):
        paceline.load(RECORDED / "x.parquet", name="No Name")
    with pytest.raises(paceline.NotFound):
        paceline.load(RECORDED / "x.parquet")


def test_what_was_not_measured_and_what_is_gone(home: state_dirs.Home) -> None:
    fill(home, "plain")
    shown = paceline.get("plain")._repr_html_()
    Checked(shown)
    assert ">0<" not in shown
    assert "no job" in api.JobHandle("gone", home)._repr_html_()
    with pytest.raises(paceline.NotFound):
        paceline.experiment("none")


def test_evidence_of_many_lines_stays_text() -> None:
    wild = dataclasses.replace(CAUSE, evidence=(Evidence(text="a\n<b>\n"),), is_past=True)
    Checked(notebooks.cause(wild))
    assert "&lt;b&gt;" in notebooks.cause(wild)
