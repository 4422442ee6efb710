"""Every reader of foreign text takes twice as long for twice as much, whatever is repeated in it.

A reader whose time grows with the square of its text is frozen by a megabyte of the right characters. Each
is given texts of one thing that is repeated, at one length and at eight times that, and its CPU time is
compared: 8 times is linear, 64 times is the square. What is compared was measured by one thread a moment
apart, so that it does not matter how fast the machine is, or what else it does. Three doublings, for a text
that has just outgrown a cache takes three times as long for twice as much, once.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import time
from collections.abc import Callable

import pytest

from paceline.agent.paceline_agent import environments, reports
from paceline.diagnosing.failures import known, last_words
from paceline.errors import PacelineError
from paceline.linting import catalogues, shells
from paceline.linting.manifests import templates
from paceline.model import quantities
from paceline.model.jobs import selectors
from paceline.model.roles import ReplicaId, Role
from paceline.sources import expositions, spools
from paceline.specs import DocumentError, parse_job
from paceline.specs.edits import assignments, edits
from paceline.specs.job_file import expansions
from paceline.specs.tfjob import tfjob_files
from paceline.specs.yaml_text import documents, plain_texts

WORKER = ReplicaId(Role.WORKER, 0)
#: Time grows by that at most where the text doubles, in the mean of so many doublings.
MOST, DOUBLINGS = 2.5, 3
#: Shorter times say nothing of how they grow.
LEAST_SECONDS = 0.004
#: Characters of the first text, and how it grows until a reader takes long enough.
FIRST, LONGEST, STEP = 1 << 11, 1 << 17, 4
TRIES = 3
#: Except at night each reader is given one in so many pumps, and so each pump to many readers.
SHARE = 3

JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: clicks}}
spec:
  command: [python, train.py, {}]
  roles: {{worker: {{replicas: 1}}}}
"""


def _manifest(text: str) -> object:
    return catalogues.lint_manifests(f"kind: Pod\nmetadata:\n  name: a\n  note: {text}\n")


def _last_words(text: str) -> object:
    words = last_words.read(text.splitlines()) or last_words.closing(text.splitlines())
    return None if words is None else known.find(words)


def _script(text: str) -> object:
    script = shells.Script(0, text, ends_at_errors=False, heeds_pipes=False)
    return shells.is_left_behind(script), shells.hidden_failure(script), shells.download_in(text)


#: Every reader of what others write, by name.
READERS: dict[str, Callable[[str], object]] = {
    "job file": lambda text: parse_job(JOB.format(text), "job.yaml"),
    "job file, all of it": lambda text: parse_job(text, "job.yaml"),
    "document": lambda text: documents.read(text, "a.yaml"),
    "manifest": _manifest,
    "manifest, all of it": lambda text: catalogues.lint_manifests(text),
    "template": templates.neutralised,
    "TFJob": lambda text: tfjob_files.convert_text(text, "a.yaml"),
    "expansion": lambda text: expansions.expand(text, {"A": "1"}),
    "plain text": plain_texts.is_ambiguous,
    "shell line": _script,
    "image": shells.floating_tag,
    "quantity": quantities.parse_quantity,
    "memory": quantities.parse_bytes,
    "cores": quantities.parse_cpu_cores,
    "duration": quantities.parse_seconds,
    "bandwidth": quantities.parse_bits_per_second,
    "selector": selectors.parse,
    "assignment": assignments.several,
    "edit": lambda text: edits.edited(f"a: {text}\nb: 1\n", [assignments.change("b=2")]),
    "output": _last_words,
    "spool": lambda text: spools.parse(text.encode(), replica=WORKER, attempt=1, offset=0),
    "spool, a line": lambda text: spools.parse(
        json.dumps({"type": "note", "at": 1.0, "message": text}).encode(), replica=WORKER, attempt=1, offset=0
    ),
    "metrics": lambda text: list(expositions.lines(text, ["a"], 0.0)),
    "report": lambda text: reports.parse_report(text.encode()),
    "report, a field": lambda text: reports.mend_report({"type": "step", "step": text}, 1.0),
    "placeholders": lambda text: environments.fill(text, {"job": "a", "role": "ps"}),
}
#: What is repeated.
PUMPS = (
    "9", ".", "1.", "e", "a", "A", " ", "\t", "\n", "\r", "-", "_", ":", "1:", ",", "'", '"', "#", " #",
    "\\", "/", "{", "}", "[", "]", "{{", "{{ a", "{% if", "{{/*", "(", ")", "$", "$(", "$(A)", "${", "&a ",
    "*a ", "!", "|", ">", "%", "@", "`", "?", "? ", "- ", "a: ", "a: b\n", "- a\n", "  ", "{a: ", "[a, ",
    "\ue000", "\ue000 ", "é", "\u2028", "Traceback (most recent call last):\n", "ValueError: a\n",
    '  File "a.py", line 1, in f\n', "curl a |", "wget a;", "a=b,", "a in (b),", 'a{b="c"} 1\n', "1h",
    "{job}", "{{job}}", "\x1b[1m", "╭", "│ ", "Error: ", "<<: ",
)  # fmt: skip


def seconds_of(reader: Callable[[str], object], text: str, *, enough: float) -> float:
    """Return the CPU time that a reader takes for a text: the least of some, or the first that is enough."""
    least = math.inf
    for _ in range(TRIES):
        began = time.thread_time()
        with contextlib.suppress(PacelineError, DocumentError, ValueError, RecursionError):
            reader(text)
        least = min(least, time.thread_time() - began)
        if least <= enough:
            break
    return least


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_linear(name: str, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(gc.enable)
    gc.disable()  # What it collects is not the reader's.
    step = 1 if request.config.getoption("nightly") else SHARE
    pumps = PUMPS[list(READERS).index(name) % step :: step]
    faults = [fault for pump in pumps if (fault := _fault(READERS[name], pump)) is not None]
    assert not faults, "\n".join(faults)


def _fault(reader: Callable[[str], object], pump: str) -> str | None:
    """Return how time grows with a text, if it grows too fast."""
    size = FIRST
    while size <= LONGEST:
        once = seconds_of(reader, pump * (size // len(pump)), enough=LEAST_SECONDS)
        if once > LEAST_SECONDS:
            most = once * MOST**DOUBLINGS
            longer = seconds_of(reader, pump * (size * 2**DOUBLINGS // len(pump)), enough=most)
            if longer <= most:
                return None
            times = longer / once
            return (
                f"{pump!r} x {size // len(pump):,}: {once:.4f} s, and {times:.0f} times for 8 times as much"
            )
        size *= STEP
    return None
