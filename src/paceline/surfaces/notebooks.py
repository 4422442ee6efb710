"""Small pieces of HTML that show jobs, causes, proposals and experiments in notebooks.

They use the notebook's own text and background colours, so they are readable in dark and light themes. They
have no style sheet and no script. All values are escaped.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from paceline.model.explanations.causes import Cause, Explanation, FieldChange
from paceline.model.measures.snapshots import Snapshot
from paceline.model.studies.experiments import Experiment
from paceline.model.studies.proposals import Proposal
from paceline.surfaces.views import cells

_EDGES = {"error": "#d55e00", "warning": "#e69f00", "info": "#0072b2"}
_TEXT = "text-align:left"
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums"


class Proposals(list[Proposal]):
    """Changes that may be worth a trial, the most promising first.

    Args:
        found: the proposals.
        none: why there are no proposals.
    """

    def __init__(self, found: Iterable[Proposal] = (), *, none: str = "") -> None:
        super().__init__(found)
        self._none = none

    def _repr_html_(self) -> str:
        return "".join(proposal(each) for each in self) or _box(_p(_escaped(self._none)))


def register() -> None:
    """Register this module's HTML forms of model values, if this process runs in a notebook."""
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    formatter = getattr(shell, "display_formatter", None)
    if formatter is None:
        return
    forms: dict[type, Any] = {
        Explanation: explanation, Cause: cause, Proposal: proposal, Experiment: experiment,
        Snapshot: snapshot,
    }  # fmt: skip
    for kind, form in forms.items():
        formatter.formatters["text/html"].for_type(kind, form)


def complaint(name: str, message: str) -> str:
    """Return a message that a job cannot be shown."""
    return _box(_p(f"<b>{_escaped(name)}</b>: {_escaped(message)}"), edge=_EDGES["error"])


def job(value: Snapshot, found: Explanation) -> str:
    """Return the state of a job and its most important current cause."""
    first = next((each for each in found.causes if not each.is_past), None)
    return snapshot(value) + (cause(first) if first else "")


def snapshot(value: Snapshot) -> str:
    """Return the state of a job: a line, and a table with a row for each role."""
    phase = "lost" if value.lost else str(value.run.phase)
    told = [
        phase,
        "" if value.progress is None else f"{value.progress:.0%}",
        "" if value.examples_per_second is None else f"{value.examples_per_second:,.0f} examples/s",
        "" if value.loss is None else f"loss {value.loss:.4g}",
        "" if value.evaluation is None or value.evaluation.auc is None else f"AUC {value.evaluation.auc:.4f}",
    ]
    line = _p(f"<b>{_escaped(value.run.name)}</b> {_escaped(' · '.join(filter(None, told)))}")
    rows = [
        (
            str(role.role),
            str(len(role.replicas)),
            _told(role.cpu_cores, "{:.2f}".format),
            _told(role.memory_bytes, cells.compact_bytes),
            _told(role.received_bytes_per_second, cells.compact_bytes),
            _told(role.sent_bytes_per_second, cells.compact_bytes),
            "" if role.hot is None else f"{role.hot} is hot",
        )
        for role in value.roles
    ]
    head = ("role", "replicas", "CPU cores", "memory", "received/s", "sent/s", "")
    return _box(line + _table(head, rows))


def explanation(found: Explanation) -> str:
    """Return an explanation: its summary, its causes, and what is not known."""
    parts = [_box(_p(f"<b>{_escaped(found.job)}</b>: {_escaped(found.summary)}"))]
    parts += [cause(each) for each in found.causes]
    if found.unknown:
        parts.append(_box(_p("Not known: " + _escaped("; ".join(found.unknown)))))
    return "".join(parts)


def cause(value: Cause) -> str:
    """Return a cause with its evidence, its change and the computed gain."""
    from paceline.diagnosing import catalogues
    from paceline.surfaces import answers

    code = catalogues.topic(value.name).code
    past = " (over)" if value.is_past else ""
    parts = [
        _p(f"<b>{_escaped(code)}</b> {_escaped(value.what)}{past}"),
        _list(each.text for each in value.evidence),
    ]
    if value.changes:
        parts.append(_change(value.changes))
    if value.gain is not None:
        parts.append(_p(_escaped(f"gain: {answers.gain(value.gain)} the examples/s, computed")))
    elif value.next_steps:
        parts.append(_list(value.next_steps))
    return _box("".join(parts), edge=_EDGES[value.severity.value])


def proposal(found: Proposal) -> str:
    """Return a proposal: its change, the computed gain and the risk."""
    from paceline.surfaces import answers

    parts = [_p(f"<b>{_escaped(found.name)}</b> {_escaped(found.what)}"), _change(found.changes)]
    if found.gain is not None:
        parts.append(_p(_escaped(f"gain: {answers.gain(found.gain)}, computed ({found.basis})")))
    if found.risk:
        parts.append(_p(_escaped(f"risk: {found.risk}")))
    return _box("".join(parts), edge="#009e73")


def experiment(found: Experiment) -> str:
    """Return a table that compares the variants of an experiment with its baseline."""
    from paceline.surfaces.views import experiments as views
    from paceline.tuning import comparisons

    rows = [
        (
            each.variant,
            str(each.runs),
            _told(each.examples_per_second, lambda speeds: f"{speeds[0]:,.0f}"),
            views.times(each),
            str(each.verdict),
        )
        for each in comparisons.compared(found)
    ]
    head = ("variant", "runs", "examples/s", "times", "verdict")
    line = _p(f"<b>{_escaped(found.name)}</b> {_escaped(views.progress(found))}")
    return _box(line + _table(head, rows))


def _change(changes: Sequence[FieldChange]) -> str:
    lines = "\n".join(
        f"{'.'.join(each.path)}: {'-' if each.value is None else each.value}" for each in changes
    )
    return f'<pre style="margin:4px 0;background:none;color:inherit">{_escaped(lines)}</pre>'


def _told(value: Any, say: Any) -> str:
    """Return a number as text, or the mark for a value that was not measured."""
    return cells.UNMEASURED if value is None else str(say(value))


def _box(body: str, edge: str = "#888") -> str:
    style = (
        f"border-left:3px solid {edge};padding:2px 12px;margin:8px 0;max-width:60em;overflow-wrap:anywhere"
    )
    return f'<div style="{style}">{body}</div>'


def _p(body: str) -> str:
    return f'<p style="margin:4px 0">{body}</p>'


def _list(texts: Iterable[str]) -> str:
    return f'<ul style="margin:4px 0">{"".join(f"<li>{_escaped(each)}</li>" for each in texts)}</ul>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first and last columns are text and whose other columns are numbers."""

    def cell(tag: str, place: int, text: str) -> str:
        style = _TEXT if place in (0, len(head) - 1) else _NUMBER
        return f'<{tag} style="{style};padding:2px 10px">{_escaped(text)}</{tag}>'

    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(
        f"<tr>{''.join(cell(tag, place, text) for place, text in enumerate(row))}</tr>" for tag, row in lines
    )
    return f'<table style="border-collapse:collapse;margin:4px 0">{body}</table>'


def _escaped(text: str) -> str:
    return html.escape(cells.clean(text) if "\n" not in text else text)
