"""Findings of a job that runs appear and go, and never flap."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity
from paceline.services.observing.finding_debounce import TO_APPEAR, TO_GO, FindingChange, FindingDebounce

GIANT = Cause(
    name="giant-variable", what="The variable ids ...", severity=Severity.WARNING, subjects=("ids", "ps-0")
)
HOT = Cause(name="hot-ps", what="ps-0 has ...", severity=Severity.WARNING, subjects=("ps-0",))
SLOW = [
    Cause(
        name="slow-host", what=f"worker-{index} ...", severity=Severity.WARNING, subjects=(f"worker-{index}",)
    )
    for index in range(2)
]


def explanation(*causes: Cause) -> Explanation:
    return Explanation(job="clicks", summary="clicks runs", causes=causes)


def told(watch: FindingDebounce, looks: Sequence[Sequence[Cause]]) -> list[list[tuple[str, bool]]]:
    return [
        [(each.cause.name, each.is_over) for each in watch.look(explanation(*causes))] for causes in looks
    ]


def test_a_finding_is_told_in_its_second_look_and_over_in_the_third_without_it() -> None:
    there, gone = [("giant-variable", False)], [("giant-variable", True)]
    looks = [[GIANT], [GIANT], [GIANT], [], [], [GIANT], [], [], [], []]
    assert told(FindingDebounce(), looks) == [[], there, [], [], [], [], [], [], gone, []]


def test_once_is_nothing() -> None:
    assert told(FindingDebounce(), [[GIANT], [], [GIANT], [], [GIANT]]) == [[]] * 5


def test_it_awaits_confirmation_of_what_it_saw_once() -> None:
    watch = FindingDebounce()
    seen = []
    for causes in ([GIANT], [], [GIANT], [GIANT], [GIANT, HOT], [GIANT, HOT], [], [GIANT, HOT]):
        watch.look(explanation(*causes))
        seen.append(watch.awaits_confirmation)
    assert seen == [True, False, True, False, True, False, False, False]


def test_what_is_primary_comes_first_and_what_is_over_last() -> None:
    watch = FindingDebounce()
    told(watch, [[HOT], [HOT], [], []])
    assert told(watch, [[GIANT, *SLOW]]) == [[("hot-ps", True)]]
    assert [each.cause for each in watch.look(explanation(GIANT, *SLOW))] == [GIANT, *SLOW]


def test_a_finding_that_follows_from_another_is_not_over() -> None:
    watch = FindingDebounce()
    told(watch, [[HOT], [HOT]])
    root = Cause(**{**_fields(GIANT), "effects": (HOT,)})
    assert told(watch, [[root]] * 4) == [[], [("giant-variable", False)], [], []]
    assert sorted(told(watch, [[]] * 3)[-1]) == [("giant-variable", True), ("hot-ps", True)]


def test_what_cannot_be_judged_is_not_over() -> None:
    watch = FindingDebounce()
    told(watch, [[GIANT], [GIANT]])
    for _ in range(9):
        assert watch.look(explanation(), unjudged={"giant-variable"}) == ()
    assert told(watch, [[], [], []])[-1] == [("giant-variable", True)]


def test_two_of_a_kind_are_told_apart_and_one_whose_subjects_grow_stays_itself() -> None:
    watch = FindingDebounce()
    told(watch, [SLOW[:1], SLOW[:1]])
    assert told(watch, [SLOW, SLOW]) == [[], [("slow-host", False)]]
    wider = Cause(**{**_fields(SLOW[0]), "subjects": ("worker-0", "worker-7")})
    assert told(watch, [[wider, SLOW[1]]] * 4) == [[]] * 4


def test_mild_and_past_causes_are_not_told() -> None:
    mild = Cause(name="too-many-ps", what="...", severity=Severity.INFO)
    past = Cause(name="out-of-memory", what="...", is_past=True)
    assert told(FindingDebounce(), [[mild, past]] * 4) == [[]] * 4
    assert told(FindingDebounce(Severity.INFO), [[mild]] * 2)[-1] == [("too-many-ps", False)]


def _fields(cause: Cause) -> dict[str, object]:
    return {name: getattr(cause, name) for name in Cause.__dataclass_fields__}


CAUSES = (GIANT, HOT, *SLOW)
LOOKS = st.lists(
    st.tuples(st.sets(st.integers(0, 3)), st.sets(st.sampled_from([each.name for each in CAUSES]))),
    max_size=40,
)


@given(LOOKS)
def test_nothing_is_told_twice_without_having_gone_and_nothing_without_reason(
    looks: list[tuple[set[int], set[str]]],
) -> None:
    watch = FindingDebounce()
    on: set[Cause] = set()
    history: dict[Cause, list[bool]] = {cause: [] for cause in CAUSES}
    for indices, unjudged in looks:
        found = [CAUSES[index] for index in sorted(indices)]
        names = {cause.name for cause in found}
        changes = watch.look(explanation(*found), unjudged=unjudged - names)
        for cause in CAUSES:
            if cause in found or cause.name not in unjudged - names:
                history[cause].append(cause in found)
        _check(changes, on, history)


def _check(changes: Sequence[FindingChange], on: set[Cause], history: dict[Cause, list[bool]]) -> None:
    assert [each.is_over for each in changes] == sorted(each.is_over for each in changes)
    for change in changes:
        assert (change.cause in on) is change.is_over
        if change.is_over:
            on.discard(change.cause)
            assert history[change.cause][-TO_GO:] == [False] * TO_GO
        else:
            on.add(change.cause)
            assert history[change.cause][-TO_APPEAR:] == [True] * TO_APPEAR
