"""The gain from relieving parameter servers of unnecessary work of the optimizer."""

from __future__ import annotations

from paceline.diagnosing import headrooms, outlooks
from paceline.diagnosing.cases import Case
from paceline.diagnosing.optimizers import table_works
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Gain
from paceline.model.measures import rates

MOST = Threshold(
    "reliefs.most", 0.95, Unit.SHARE,
    means="At most this share of the servers' work, or of the bytes that move, can be spared. Something is "
    "always left: a lookup and an update of the rows that a batch uses.",
    below=1.0,
)  # fmt: skip


def gain(case: Case, work: float, moved: float = 0.0) -> Gain | None:
    """Return the gain from removing a share of the servers' work, and a share of the bytes that move.

    The network of queues computes the gain from the load of the servers; a trace, if there is one, gives it
    from how long trainers wait for servers. The truth lies between the two: a server that has few cores, or
    shares them, keeps trainers waiting even if its use is low.
    """
    most = case.value(MOST)
    work, moved = min(work, most), min(moved, most)
    relieved = outlooks.servers_relieved(case, work)
    found = outlooks.gain(case, lambda now: outlooks.links_times(relieved(now), 1 / (1 - moved)))
    waiting = table_works.waiting_share(case)
    if found is None:
        return None
    traced = 1.0 if waiting is None else 1 / max(1 - waiting * max(work, moved), 1 - most)
    used = rates.total(each.cpu_cores for each in case.servers) or 0.0
    bounds = Gain(low=found.low, high=max(found.high, traced))
    return headrooms.within(case, bounds, spared_cores=work * used)
