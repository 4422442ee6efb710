"""Measures how often a script saves checkpoints and writes summaries, and how long training stops for it.

Nothing is done in a step that does neither.
"""

from __future__ import absolute_import

from . import signatures, stepping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

    from .guarding import Guard
    from .reporting import Reporter
    from .stepping import Steps

clock = stepping.clock
#: A rate is first reported after this many times, then each time that the count has doubled.
FIRST_TIMES = 3


class Milestones(object):
    """Decides when to report again: after 3, 6, 12, 24 times and so on."""

    def __init__(self):
        # type: () -> None
        self.count = 0
        self._due = FIRST_TIMES

    def reached(self):
        # type: () -> bool
        """Count once; return whether to report now."""
        self.count += 1
        if self.count < self._due:
            return False
        self._due *= 2
        return True


class SaveWatch(object):
    """Wraps the functions that save a checkpoint or write a summary, whatever calls them.

    Args:
        reporter: takes the facts.
        guard: shields the script from errors.
        steps: knows how many steps were made in between.
    """

    def __init__(self, reporter, guard, steps):
        # type: (Reporter, Guard, Steps) -> None
        self._reporter = reporter
        self._guard = guard
        self._steps = steps
        self._saves, self._summaries = Milestones(), Milestones()
        #: When the first checkpoint after a step was saved, and after how many steps the first summary was
        #: written.
        self._saved_since = None  # type: Optional[float]
        self._summed_since = None  # type: Optional[int]
        self._saving_seconds = 0.0
        self._summary_bytes = 0

    def patch_savers(self, module):
        # type: (ModuleType) -> None
        """Wrap ``Saver.save``, which hooks, supervisors and Estimators also call."""
        saver = module.Saver
        original = saver.save
        signatures.check(original, ("self", "sess", "save_path"))

        @signatures.wraps(original)
        def save(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            begun = clock()
            path = original(own, *arguments, **named)
            self._guard(self._note_save, begun)
            return path

        saver.save = save

    def _note_save(self, begun):
        # type: (float) -> None
        if not self._steps.are_here():  # Before the first step, or in another thread: nothing stops.
            return
        if self._saved_since is None:
            self._saved_since = clock()
            return
        now = clock()
        self._saving_seconds += now - begun
        if self._saves.reached():
            elapsed = now - self._saved_since
            self._reporter.state("checkpoint_every_seconds", round(elapsed / self._saves.count, 3))
            self._reporter.state("checkpoint_share", round(min(1.0, self._saving_seconds / elapsed), 3))

    def patch_writers(self, module):
        # type: (ModuleType) -> None
        """Wrap ``FileWriter.add_summary``."""
        writer = module.SummaryToEventTransformer
        original = writer.add_summary
        signatures.check(original, ("self", "summary", "global_step"))

        @signatures.wraps(original)
        def add_summary(own, summary, global_step=None):
            # type: (Any, Any, Any) -> Any
            result = original(own, summary, global_step)
            self._guard(self._note_summary, summary)
            return result

        writer.add_summary = add_summary

    def _note_summary(self, summary):
        # type: (Any) -> None
        if self._summed_since is None:
            self._summed_since = self._steps.total() or None
            return
        self._summary_bytes += len(summary) if isinstance(summary, bytes) else summary.ByteSize()
        if self._summaries.reached():
            steps, count = self._steps.total() - self._summed_since, self._summaries.count
            self._reporter.state("summary_every_steps", round(float(steps) / count, 1))
            self._reporter.state("summary_bytes", round(float(self._summary_bytes) / count))
