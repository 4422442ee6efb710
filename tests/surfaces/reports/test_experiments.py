"""The page about an experiment."""

from __future__ import annotations

import dataclasses

import pytest
from support import searches

pytest.importorskip("jinja2")


from paceline.model.studies.studies import TrialOutcome
from paceline.surfaces.reports import experiments


def test_a_run_that_did_not_train_has_no_dot_and_no_part_in_the_mean() -> None:
    trained = experiments.page(searches.COMPARED)
    failed = dataclasses.replace(
        searches.COMPARED.done[0], number=1, outcome=TrialOutcome(failure="ps-0 was killed: out of memory")
    )
    more = dataclasses.replace(searches.COMPARED, done=(*searches.COMPARED.done, failed))
    page = experiments.page(more)
    assert "out of memory" in page
    before, after = (each[each.index("<figure") : each.index("</figure>")] for each in (trained, page))
    assert "small: 100" in after
    assert after == before
