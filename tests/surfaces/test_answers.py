"""An explanation in words, and in Markdown."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from paceline.model.explanations.causes import (
    Cause,
    Evidence,
    EvidenceSource,
    Explanation,
    FieldChange,
    Gain,
    Option,
    Outlook,
)
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId
from paceline.surfaces import answers
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views import markdowns

SOURCE = """\
spec:
  roles:
    ps: {replicas: 2, cpu: 500m}
  training:
    batch_size: 512
    variable_placement: round-robin
"""
DIFFS = Diffs(source=SOURCE, spec=JobSpec(name="clicks"))
SAMPLES = EvidenceSource(
    what="samples", field="cpu_cores", replicas=tuple(map(ReplicaId.parse, ("ps-0", "ps-1"))), count=60,
    since=1.8e9, until=1.8e9 + 30,
)  # fmt: skip
HOT = Cause(name="hot-ps", what="ps-0 has 1.9 times the mean load of the PS.", severity=Severity.INFO)
WAITING = Cause(name="waiting-for-ps", what="Trainers wait 70% of their time.", severity=Severity.INFO)
GIANT = Cause(
    name="giant-variable",
    what="The variable user_table makes ps-0 hot.",
    severity=Severity.WARNING,
    evidence=(Evidence(text="ps-0 uses 0.98 of 1.00 cores", sources=(SAMPLES,)),),
    next_steps=("paceline plan clicks compares ways",),
    changes=(
        FieldChange(path=("spec", "roles", "ps", "cpu"), value=1),
        FieldChange(path=("spec", "training", "variable_placement"), value=None),
    ),
    risk="None.",
    gain=Gain(low=1.42, high=1.81),
    effects=(dataclasses.replace(HOT, effects=(WAITING,)),),
)
PAST = Cause(name="out-of-memory", what="worker-0 ran out of memory.", is_past=True)
OUTLOOK = Outlook(
    binds="CPU of ps-0",
    uses=(("CPU of ps-0", 0.98), ("CPU of ps-1", 0.05)),
    knee_workers=1.6,
    options=(Option(what="2 x workers", gain=Gain(low=1.0, high=1.04), binds="CPU of ps-0"),),
)
FOUND = Explanation(
    job="clicks", summary="clicks runs, for 3m12s, and could be faster", causes=(GIANT, PAST),
    unknown=("not enough data: a trace (paceline trace clicks)",), outlook=OUTLOOK,
)  # fmt: skip

MARKDOWN = r"""## Why clicks is as it is

clicks runs, for 3m12s, and could be faster.

### PS001 The variable user_table makes ps-0 hot.

- ps-0 uses 0.98 of 1.00 cores
- What follows: PS004 ps-0 has 1.9 times the mean load of the PS.
- What follows: WRK201 Trainers wait 70% of their time.

Change in the job file:

```diff
@@ -1,6 +1,5 @@
 spec:
   roles:
-    ps: {replicas: 2, cpu: 500m}
+    ps: {replicas: 2, cpu: 1}
   training:
     batch_size: 512
-    variable_placement: round-robin
```

Or:

- paceline -n ads plan clicks compares ways

**Gain:** 1.4 to 1.8 times the examples per second (computed).

**Risk:** None.

### LIFE402 worker-0 ran out of memory. (over)

### What is not known

- not enough data: a trace (paceline -n ads trace clicks)

### How it scales

What binds now: **CPU of ps-0**.

| Bound | Used |
| --- | ---: |
| CPU of ps-0 | 98% |
| CPU of ps-1 | 5% |

| With | Examples/s (computed) | Then binds |
| --- | ---: | --- |
| 2 x workers | 1.0 times | CPU of ps-0 |

From about 2 workers on, more of them bring little."""


def said(found: Explanation) -> answers.Answer:
    return answers.answer(found, diffs=DIFFS, say=lambda text: text.replace("paceline", "paceline -n ads"))


def test_the_text_has_all_that_is_known() -> None:
    assert markdowns.text(said(FOUND)) == MARKDOWN


def test_numbers_say_where_they_come_from() -> None:
    found = said(FOUND).primary
    assert found is not None
    (seen,) = found.seen
    assert seen.sources == "cpu_cores, 60 samples (ps-0, ps-1), 08:00:00 to 08:00:30 UTC"
    many = dataclasses.replace(
        SAMPLES, replicas=tuple(ReplicaId.parse(f"ps-{n}") for n in range(9)), since=None
    )
    assert answers.origin(many) == "cpu_cores, 60 samples (ps-0, ps-1, ps-2, ps-3 and 5 more)"
    once = EvidenceSource(what="traces", field="transfers", count=2, since=1.8e9, until=1.8e9)
    assert answers.origin(once) == "transfers, 2 traces, 08:00:00 UTC"
    alone = EvidenceSource(what="job file", field="cpu_policy", count=1)
    assert answers.origin(alone) == "cpu_policy, job file"


def test_what_is_over_is_never_primary() -> None:
    found = said(dataclasses.replace(FOUND, causes=(PAST,), outlook=None))
    assert found.primary is None
    assert [each.code for each in found.others] == ["LIFE402"]


def test_of_many_bounds_the_rest_is_one_line() -> None:
    uses = tuple((f"CPU of ps-{n}", 0.9 - n / 100) for n in range(20))
    found = said(dataclasses.replace(FOUND, outlook=dataclasses.replace(OUTLOOK, uses=uses))).outlook
    assert found is not None
    assert [name for name, _, _ in found.uses][-2:] == ["CPU of ps-6", "13 others, each at most"]
    assert found.uses[-1][1] == uses[7][1]


@given(st.text(max_size=60))
def test_what_comes_from_users_is_text(words: str) -> None:
    causes = (dataclasses.replace(GIANT, what=words, evidence=(Evidence(text=words),), next_steps=(words,)),)
    changes = (FieldChange(path=("spec", words), value=words),)
    hostile = dataclasses.replace(FOUND, causes=(dataclasses.replace(causes[0], changes=changes),))
    shown = markdowns.text(said(hostile))
    assert shown.count("```") == 2
    assert sum(line.startswith("#") for line in shown.splitlines()) == 4
    assert sum(line.startswith("| ---") for line in shown.splitlines()) == 2
