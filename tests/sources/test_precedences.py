"""Of several sources the most believed counts, figure by figure, and says where each came from."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from support.recorded import PS_0

from paceline.model import rates
from paceline.model.samples import Sample
from paceline.sources import precedences
from paceline.sources.precedences import Origin
from paceline.sources.readings import Source


def sample(at: float = 100.0, interval: float = 10.0, **figures: Any) -> Sample:
    return Sample(replica=PS_0, attempt=1, at=at, interval_seconds=interval, **figures)


def test_each_figure_is_that_of_the_most_believed_source_that_has_it() -> None:
    found = precedences.joined(
        {
            Source.PROMETHEUS: sample(90.0, cpu_cores=9.0, memory_bytes=9, gpu_memory_bytes=9),
            Source.METRICS_SERVER: sample(80.0, cpu_cores=4.0, memory_bytes=4),
            Source.DCGM: sample(99.0, gpu_utilization=0.5),
            Source.AGENT: sample(100.0, cpu_cores=1.0, voluntary_switches=7),
            Source.CADVISOR: sample(95.0, cpu_cores=2.0, memory_bytes=2, throttled_seconds=0.0),
        }
    )
    assert found is not None
    assert found.sample == sample(
        100.0,
        cpu_cores=1.0,
        voluntary_switches=7,
        memory_bytes=2,
        throttled_seconds=0.0,
        gpu_utilization=0.5,
        gpu_memory_bytes=9,
    )
    assert found.origins == {
        "cpu_cores": Origin(Source.AGENT, 100.0),
        "voluntary_switches": Origin(Source.AGENT, 100.0),
        "memory_bytes": Origin(Source.CADVISOR, 95.0),
        "throttled_seconds": Origin(Source.CADVISOR, 95.0),
        "gpu_utilization": Origin(Source.DCGM, 99.0),
        "gpu_memory_bytes": Origin(Source.PROMETHEUS, 90.0),
    }


def test_a_source_that_fell_silent_is_not_believed_any_more() -> None:
    found = precedences.joined(
        {Source.AGENT: sample(100.0, cpu_cores=1.0), Source.KUBELET: sample(170.0, cpu_cores=2.0)}
    )
    assert found is not None
    assert (found.sample.cpu_cores, found.sample.at) == (2.0, 170.0)


def test_counts_over_another_interval_keep_their_rate() -> None:
    found = precedences.joined(
        {
            Source.AGENT: sample(100.0, 1.0, cpu_cores=1.0),
            Source.CADVISOR: sample(95.0, 15.0, network_sent_bytes=30_000, throttled_seconds=3.0),
        }
    )
    assert found is not None
    assert (found.sample.network_sent_bytes, found.sample.interval_seconds) == (2000, 1.0)
    assert rates.rate([found.sample], lambda each: each.throttled_seconds) == 0.2


def test_one_source_alone_is_what_it_says() -> None:
    only = sample(network_sent_bytes=3)
    found = precedences.joined({Source.PROMETHEUS: only})
    assert found is not None
    assert found.sample == only
    assert precedences.joined({}) is None


_SAMPLES = st.builds(
    sample,
    st.floats(0, 200),
    st.floats(0.1, 60),
    cpu_cores=st.none() | st.floats(0, 8),
    memory_bytes=st.none() | st.integers(0, 10),
    network_sent_bytes=st.none() | st.integers(0, 10**9),
)


@given(st.dictionaries(st.sampled_from(list(Source)), _SAMPLES, min_size=1))
def test_nothing_is_lost_and_nothing_is_made_up(samples: dict[Source, Sample]) -> None:
    found = precedences.joined(samples)
    assert found is not None
    newest = max(each.at for each in samples.values())
    for name in ("cpu_cores", "memory_bytes", "network_sent_bytes"):
        present = [
            s for s, each in samples.items() if newest - each.at <= 60 and getattr(each, name) is not None
        ]
        if present:
            assert found.origins[name].source is min(present, key=list(Source).index)
        else:
            assert getattr(found.sample, name) is None
            assert name not in found.origins
