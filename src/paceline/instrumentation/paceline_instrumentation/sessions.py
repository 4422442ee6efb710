"""Sees the steps of scripts that drive a session: ``Session.run``, monitored sessions, supervisors.

All of them end in ``BaseSession._do_run``, which has had one signature since TensorFlow 1.4. There fetches are
tensors and operations of the graph already, so what kind of run it is follows from their identities.
"""

from __future__ import absolute_import

import functools
import threading
import weakref

from paceline_instrumentation import counting, graphs, signatures

if False:  # for type checkers
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from paceline_instrumentation.guarding import Guard
    from paceline_instrumentation.reporting import Reporter

    Key = Tuple[int, ...]

clock = counting.clock
#: Kinds of runs of one graph; a script with more makes new operations in each step, and none is classified then.
MOST_KINDS = 1000


class _Kind(object):
    """Runs with the same fetches and targets.

    Attributes:
        run: what it trains; None: it makes no step.
        counter: its steps.
        waited: seconds between steps, in which a script that feeds values makes them.
        ended_at: when the last step ended, by thread.
    """

    def __init__(self, run):
        # type: (Optional[graphs.TrainingRun]) -> None
        self.run = run
        self.counter = counting.StepCounter()
        self.waited = 0.0
        self.ended_at = threading.local()


class SessionWatch(object):
    """Counts the runs that train, and asks once a second for what a report says beside their number.

    Args:
        reporter: takes the reports.
        guard: keeps errors from the script.
        facts: what is known of the script so far (``graphs.Facts``).
    """

    def __init__(self, reporter, guard, facts):
        # type: (Reporter, Guard, graphs.Facts) -> None
        self._reporter = reporter
        self._guard = guard
        self._facts = facts
        self._kinds = {}  # type: Dict[int, Dict[Key, _Kind]]
        self._asking = threading.Lock()

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the sessions of ``tensorflow.python.client.session``."""
        base = module.BaseSession
        expected = ("self", "handle", "target_list", "fetch_list", "feed_dict", "options", "run_metadata")
        signatures.check(base._do_run, expected)
        base._do_run = self._wrapped(base._do_run)

    def _wrapped(self, original):
        # type: (Callable[..., List[Any]]) -> Callable[..., List[Any]]
        kinds, guard = self._kinds, self._guard

        @functools.wraps(original)
        def _do_run(session, handle, target_list, fetch_list, feed_dict, options, run_metadata):
            # type: (Any, Any, List[Any], List[Any], Any, Any, Any) -> List[Any]
            key = tuple(map(id, target_list)) + tuple(map(id, fetch_list))
            try:
                kind = kinds[id(session._graph)][key]
            except KeyError:
                kind = None if guard.is_broken else guard(self._kind, session, key, target_list, fetch_list)
            if kind is None or kind.run is None or handle is not None or guard.is_broken:
                return original(session, handle, target_list, fetch_list, feed_dict, options, run_metadata)
            begun = clock()
            if begun < kind.counter.due:
                ended = getattr(kind.ended_at, "value", begun)
                found = original(session, handle, target_list, fetch_list, feed_dict, options, run_metadata)
                kind.waited += begun - ended
                next(kind.counter.count)
                kind.ended_at.value = clock()
                return found
            return self._asked(kind, original, session, target_list, fetch_list, feed_dict, options, run_metadata)

        return _do_run

    def _kind(self, session, key, targets, fetches):
        # type: (Any, Key, List[Any], List[Any]) -> _Kind
        """Return the kind of a run that was not seen before."""
        graph = session._graph
        of_graph = self._kinds.get(id(graph))
        if of_graph is None:
            of_graph = self._kinds[id(graph)] = {}
            weakref.finalize(graph, self._kinds.pop, id(graph), None).atexit = False
        kind = _Kind(None)
        if len(of_graph) < MOST_KINDS:
            of_graph[key] = kind  # what fails is not tried again
            kind.run = graphs.training_run(graph, targets, fetches, self._facts)
        return kind

    def _asked(self, kind, original, session, targets, fetches, feeds, options, metadata):
        # type: (_Kind, Callable[..., List[Any]], Any, List[Any], List[Any], Any, Any, Any) -> List[Any]
        """Make a step whose report is due: what it says is fetched with the step, and taken away again."""
        assert kind.run is not None
        extras = []  # type: List[Any]
        is_asking = self._asking.acquire(False)
        try:
            if is_asking:
                extras = self._guard(kind.run.extras, fetches) or []
            begun = clock()
            ended = getattr(kind.ended_at, "value", begun)
            found = original(session, None, targets, fetches + extras, feeds, options, metadata)
            kind.waited += begun - ended
            next(kind.counter.count)
            kind.ended_at.value = clock()
            if is_asking:
                self._guard(self._report, kind, fetches + extras, found, feeds)
            return found[: len(fetches)]
        finally:
            if is_asking:
                self._asking.release()

    def _report(self, kind, fetched, values, feeds):
        # type: (_Kind, List[Any], List[Any], Any) -> None
        assert kind.run is not None
        report = kind.counter.interval()
        report.update(kind.run.read(fetched, values, feeds))
        batch = report.pop("batch", None)
        report["examples"] = None if batch is None else report["steps"] * batch
        report["input_wait_seconds"], kind.waited = (kind.waited if kind.run.is_fed else None), 0.0
        self._reporter.append("step", report)
