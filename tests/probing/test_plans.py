"""What a probe cuts next, against jobs whose bottleneck is known: a step is the sum of its parts."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Cut, CutPart, Elasticity, PartVerdict
from paceline.probing import estimates, plans
from paceline.probing.plans import Scope


def names(role: str, count: int) -> tuple[str, ...]:
    return tuple(f"{role}-{index}" for index in range(count))


class Job:
    """A job of which each replica's cores take a share of the time of a step, and something else the rest.

    Args:
        shares: of the time, by the name of a replica; what is missing to 1 nothing that is cut changes.
        noise: standard deviation of the logarithm of a rate.
    """

    def __init__(self, shares: Mapping[str, float], *, noise: float, seed: int) -> None:
        self._shares, self._noise = shares, noise
        self._random = random.Random(seed)

    def rate(self, cut: Sequence[str] = (), factor: float = 1.0) -> float:
        rest = 1.0 - sum(self._shares.values())
        time = rest + sum(share / (factor if name in cut else 1.0) for name, share in self._shares.items())
        return 1000.0 / time * math.exp(self._random.gauss(0.0, self._noise))


def probed(job: Job, scope: Scope, most: int = 60) -> tuple[list[Elasticity], list[Cut]]:
    """Cut until enough is known; return what is known in the end, and the cuts."""
    baselines = [job.rate() for _ in range(10)]
    cuts: list[Cut] = []
    while len(cuts) < most:
        known = estimates.known(cuts, baselines)
        part = next(iter(plans.following(scope, known)), None)
        if part is None:
            break
        factor = plans.factor(*estimates.noise(cuts, baselines))
        before, after = job.rate(), job.rate()
        cuts.append(
            Cut(
                part=part, factor=factor, since=0.0, until=5.0,
                rate=job.rate(part.targets, factor), before=before, after=after,
            )
        )  # fmt: skip
        baselines += [before, after]
    known = estimates.known(cuts, baselines)
    return list(plans.ends(scope, known)), cuts


def test_where_it_is_seen_who_feels_a_cut_one_cut_of_all_tells_the_one_that_binds() -> None:
    job = Job({"ps-2": 0.9}, noise=0.02, seed=7)
    baselines = [job.rate() for _ in range(12)]
    group = CutPart(Knob.CPU, names("ps", 44))

    def cut(part: CutPart) -> Cut:
        return Cut(
            part=part, factor=0.7, since=0.0, until=5.0, rate=job.rate(part.targets, 0.7),
            before=job.rate(), after=job.rate(), felt=("ps-2",),
        )  # fmt: skip

    scope = Scope(parts=(group,))
    known = estimates.known([cut(group)], baselines)
    assert plans.following(scope, known) == [CutPart(Knob.CPU, ("ps-2",))], "to know it well"
    known = estimates.known([cut(group), cut(CutPart(Knob.CPU, ("ps-2",)))], baselines)
    first, others = plans.ends(scope, known)
    assert (first.part.targets, first.verdict, first.cuts) == (("ps-2",), PartVerdict.BINDS, 2)
    assert (len(others.part.targets), others.verdict, others.value) == (43, PartVerdict.RESTS, 0.0)


def test_a_cut_that_no_replica_feels_says_that_the_part_rests_whatever_the_rate_does() -> None:
    part = CutPart(Knob.CPU, names("ps", 2))
    cut = Cut(part=part, factor=0.7, since=0.0, until=5.0, rate=50.0, before=100.0, after=100.0, felt=())
    known = estimates.known([cut], [100.0] * 12)
    assert known.elasticities[part].verdict is PartVerdict.RESTS
    assert plans.following(Scope(parts=(part,)), known) == []


def scope(ps: int, workers: int, *, seed: int = 0) -> Scope:
    trainers = CutPart(Knob.CPU, names("worker", workers))
    order = random.Random(seed)
    return Scope(
        parts=(CutPart(Knob.CPU, names("ps", ps)), trainers),
        whole=(trainers,),
        shuffled=lambda parts: order.sample(list(parts), len(parts)),
    )


def binding(found: Sequence[Elasticity]) -> list[tuple[str, ...]]:
    return [each.part.targets for each in found if each.verdict is PartVerdict.BINDS]


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
def test_the_one_server_that_binds_is_named(noise: float) -> None:
    named = [
        binding(probed(Job({"ps-0": 0.9}, noise=noise, seed=seed), scope(3, 4, seed=seed))[0])
        for seed in range(40)
    ]
    assert sum(each == [("ps-0",)] for each in named) >= 38


def test_workers_that_bind_are_named_together() -> None:
    found, cuts = probed(Job(dict.fromkeys(names("worker", 18), 0.05), noise=0.01, seed=1), scope(4, 18))
    assert binding(found) == [names("worker", 18)]
    assert len(cuts) <= 6


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
def test_of_a_job_that_waits_for_something_else_nothing_binds(noise: float) -> None:
    found = [
        probed(Job({"ps-0": 0.05, "worker-1": 0.03}, noise=noise, seed=seed), scope(3, 4, seed=seed))[0]
        for seed in range(40)
    ]
    assert sum(not binding(each) for each in found) >= 38


def test_one_of_many_is_found_by_halving() -> None:
    found, cuts = probed(Job({"ps-33": 0.8}, noise=0.01, seed=3), scope(44, 176))
    assert binding(found) == [("ps-33",)]
    assert len(cuts) <= 26, "two for each halving, and some to know them well"


def test_that_all_of_many_bind_evenly_is_known_without_cutting_each() -> None:
    found, cuts = probed(Job(dict.fromkeys(names("ps", 44), 0.9 / 44), noise=0.01, seed=4), scope(44, 176))
    assert binding(found) == [names("ps", 44)]
    assert len(cuts) <= 10


def test_nothing_is_cut_more_often_than_it_may_be() -> None:
    _, cuts = probed(Job({"ps-0": 0.5, "ps-1": 0.3}, noise=0.2, seed=5), scope(4, 4))
    for part in {cut.part for cut in cuts}:
        assert sum(cut.part == part for cut in cuts) <= plans.MOST_CUTS


def test_a_part_is_cut_apart_into_all_that_it_has() -> None:
    for count in (1, 2, 4, 5, 44):
        part = CutPart(Knob.CPU, names("ps", count))
        below = plans.apart(part)
        targets = [target for each in below for target in each.targets]
        assert targets == ([] if count == 1 else [*part.targets])


def test_noise_makes_cuts_deeper_within_bounds() -> None:
    assert plans.factor(0.0, 0) == plans.FIRST
    depths = [plans.factor(noise, 5) for noise in (0.001, 0.01, 0.02, 0.2)]
    assert depths == sorted(depths, reverse=True)
    assert (depths[0], depths[-1]) == (plans.SHALLOW, plans.DEEP)


def test_a_deeper_cut_is_expected_to_cost_as_much_more() -> None:
    group, alone = CutPart(Knob.CPU, ("ps-0", "ps-1")), CutPart(Knob.CPU, ("ps-0",))
    made = Cut(part=group, factor=0.8, since=0.0, until=5.0, rate=80.0, before=100.0, after=100.0)
    assert plans.expected_cost(group, 0.6, [made], 1.0) == pytest.approx(40.0)
    assert plans.expected_cost(alone, 0.8, [made], 1.0) == pytest.approx(20.0)
    assert plans.expected_cost(alone, 0.8, [made], 0.1) == 0.0, "it uses next to nothing, and was not cut"
    assert plans.expected_cost(CutPart(Knob.CPU, ("ps-2",)), 0.6, [made], 1.0) == 0.0
