"""The pages of the catalogue: every code of a rule or a cause, with its explanation."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
from paceline.surfaces import explanations, site_numbers
from paceline.surfaces.explanations import CodeEntry
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering

router = APIRouter(include_in_schema=False, prefix="/rules")
Known = Annotated[CallerRequest, Depends(may(ApiOperation.ASK))]


@router.get("")
def list_rules(
    request: Request,
    _asked: Known,
    search: Annotated[str, Query(max_length=200)] = "",
    part: bool = False,
) -> HTMLResponse:
    """Show all codes, or those in which all words that are searched for stand."""
    words = search.casefold().split()
    found = [each for each in explanations.entries() if all(word in _text(each) for word in words)]
    return rendering.page(
        request,
        "rule_rows.html" if part else "rules.html",
        search=search,
        causes=[each for each in found if each.name],
        lint=[each for each in found if not each.name],
    )


@router.get("/{code}")
def show_rule(request: Request, asked: Known, code: str) -> HTMLResponse:
    """Show what a code is about."""
    entry = explanations.find(code)
    rule = _rules().get(entry.name)
    return rendering.page(
        request,
        "rule.html",
        entry=entry,
        needs=rule.needs if rule else (),
        effects=[catalogues.topic(name) for name in rule.explains] if rule else (),
        thresholds=site_numbers.of_rule(rule, asked.jobs.thresholds()) if rule else (),
    )


def _text(entry: CodeEntry) -> str:
    """Return the text of an entry that a search looks in."""
    return " ".join((entry.code, entry.name, entry.title, entry.why, entry.fix, entry.severity)).casefold()


@functools.cache
def _rules() -> Mapping[str, Rule]:
    """Return the rules by the names of their causes."""
    return {each.topic.name: each for each in catalogues.RULES}
