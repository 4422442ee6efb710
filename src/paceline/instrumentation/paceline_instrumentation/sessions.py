"""Watches the steps of scripts that use sessions: ``Session.run``, monitored sessions, supervisors.

All of them end in ``BaseSession._do_run``, whose signature has not changed since TensorFlow 1.4. There the
fetches are already tensors and operations of the graph, so their identities show what kind of run it is.
"""

from __future__ import absolute_import

import functools
import threading
import time
import weakref

from . import graph_facts, graphs, inputs, signatures, stepping, traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    from .guarding import Guard
    from .models import Model
    from .reporting import Reporter
    from .servers import ServerWatch
    from .stepping import Steps

    Key = Tuple[int, ...]
    DoRun = Callable[..., List[Any]]
    Names = Sequence[str]
    Traced = Callable[[], Callable[..., Any]]

clock = stepping.clock
#: The most kinds of runs of one graph. A script with more makes new operations in each step; the further
#: kinds are not analyzed.
MOST_KINDS = 1000
#: The most time to spend on analyzing kinds of runs: a graph may have a hundred thousand operations.
MOST_JUDGING_SECONDS = 5.0
_DO_RUN = ("self", "handle", "target_list", "fetch_list", "feed_dict", "options", "run_metadata")
_MAKE_CALLABLE = ("self", "fetches", "feed_list", "accept_options")
_FROM_OPTIONS = ("self", "callable_options")
_FULL_TRACE = 3  # RunOptions.TraceLevel in config.proto.


class _Trace(object):
    """A trace to make of a step: its name, what else is known of the step, and TensorFlow's buffers."""

    def __init__(self, name, context, buffers):
        # type: (str, Dict[str, Any], traces.Buffers) -> None
        self.name = name
        self.context = context
        self.buffers = buffers


class SessionWatch(object):
    """Counts the runs that train, and once a second fetches the other values that a report contains.

    Args:
        steps: counts the steps.
        guard: shields the script from errors.
        facts: what is known of the script so far (``graphs.Facts``).
        model: takes each graph that trains.
        trace_watch: decides which steps are traced.
        servers: knows which task of a cluster this process is.
        reporter: takes the facts about the first graph that trains.
    """

    def __init__(self, steps, guard, facts, model, trace_watch, servers, reporter):
        # type: (Steps, Guard, graphs.Facts, Model, traces.TraceWatch, ServerWatch, Reporter) -> None
        self._reporter = reporter
        self._is_noted = False
        self._inputs = inputs.InputWatch(reporter, steps)
        self._steps = steps
        self._guard = guard
        self._facts = facts
        self._model = model
        self._trace_watch = trace_watch
        self._servers = servers
        self._tf_session = self._config_pb2 = None  # type: Any
        self._judging_seconds = 0.0
        #: By the identity of a graph, and the identities of what a run fetches; None: such a run makes no
        #: step.
        self._kinds = {}  # type: Dict[int, Dict[Key, Optional[graphs.TrainingRun]]]
        self._asking = threading.Lock()

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the sessions of ``tensorflow.python.client.session``."""
        base = module.BaseSession
        signatures.check(base._do_run, _DO_RUN)
        signatures.check(base.make_callable, _MAKE_CALLABLE)
        self._tf_session, self._config_pb2 = module.tf_session, module.config_pb2
        base._do_run = self._counted(base._do_run)
        base.make_callable = self._counted_callable(base.make_callable, module._FetchHandler)
        if hasattr(base, "_make_callable_from_options"):  # From 1.5 on; Keras trains through it in a session.
            signatures.check(base._make_callable_from_options, _FROM_OPTIONS)
            base._make_callable_from_options = self._counted_options(base._make_callable_from_options)

    def _counted(self, original):
        # type: (DoRun) -> DoRun
        kinds, guard, steps = self._kinds, self._guard, self._steps
        unwatched, identity = steps.unwatched, id  # Local names are faster to look up.

        @signatures.wraps(original)
        def _do_run(session, handle, target_list, fetch_list, feed_dict, options, run_metadata):
            # type: (Any, Any, List[Any], List[Any], Any, Any, Any) -> List[Any]
            if handle is None and identity((target_list or fetch_list)[0]) == unwatched.kind:
                fetched = original(session, None, target_list, fetch_list, feed_dict, options, run_metadata)
                for _ in unwatched.left:
                    return fetched
                steps.add_unwatched()
                return fetched
            key = tuple(map(id, target_list)) + tuple(map(id, fetch_list))
            try:
                run = kinds[id(session._graph)][key]
            except KeyError:
                run = guard(self._kind, session._graph, key, target_list, fetch_list)
            begun = clock()
            if run is None or handle is not None or guard.is_broken:
                fetched = original(session, handle, target_list, fetch_list, feed_dict, options, run_metadata)
                steps.pass_by(begun)
                return fetched
            if begun >= steps.due:
                return self._asked(
                    run, begun, original, session, target_list, fetch_list, feed_dict, options, run_metadata
                )
            fetched = original(session, handle, target_list, fetch_list, feed_dict, options, run_metadata)
            steps.add(begun)
            if steps.is_fast():
                if run.first is None:
                    run.first = guard(self._first, session._graph, target_list, fetch_list) or 0
                steps.leave_unwatched(run.first)
            return fetched

        return _do_run

    def _first(self, graph, targets, fetches):
        # type: (Any, List[Any], List[Any]) -> int
        """Return the identity of a run's first item if any run that begins with it makes a step; else 0."""
        run = self._kind_once(graph, targets[:1], [] if targets else fetches[:1])
        return 0 if run is None else id((targets or fetches)[0])

    def _kind(self, graph, key, targets, fetches):
        # type: (Any, Key, List[Any], List[Any]) -> Optional[graphs.TrainingRun]
        """Return what a run of a new kind trains; None: it makes no step."""
        of_graph = self._kinds.get(id(graph))
        if of_graph is None:
            of_graph = self._kinds[id(graph)] = {}
            weakref.finalize(graph, self._forget, id(graph)).atexit = False
        if len(of_graph) >= MOST_KINDS or self._judging_seconds > MOST_JUDGING_SECONDS:
            self._steps.say("there are too many kinds of runs to look into all of them")
            return None
        of_graph[key] = None  # A failed analysis is not repeated.
        begun = clock()
        found = graphs.training_run(graph, targets, fetches, self._facts)
        self._judging_seconds += clock() - begun
        if found is None:
            return None
        run, needed = found
        of_graph[key] = run
        self._steps.begin("sessions", run.described())
        self._model.describe(graph, needed, self._facts)
        if not self._is_noted:
            self._is_noted = True
            self._guard(graph_facts.note, self._reporter, graph, needed, self._facts)
        return run

    def _forget(self, identity):
        # type: (int) -> None
        """Forget a graph that is gone: new objects may have the identities of its objects."""
        self._kinds.pop(identity, None)
        self._steps.watch()

    def _asked(self, run, begun, original, session, targets, fetches, feeds, options, metadata):
        # type: (graphs.TrainingRun, float, DoRun, Any, List[Any], List[Any], Any, Any, Any) -> List[Any]
        """Make a step whose report is due: fetch the reported values too, and remove them from the result."""
        if not self._asking.acquire(False):
            fetched = original(session, None, targets, fetches, feeds, options, metadata)
            self._steps.add(begun)
            return fetched
        try:
            fed = self._guard(_fed, feeds)
            all_fetches = fetches + (self._guard(self._extras, run, fetches, fed) or [])
            trace = self._guard(self._trace, run, begun, options)
            if trace is None:
                fetched = original(session, None, targets, all_fetches, feeds, options, metadata)
            else:
                fetched = self._traced(
                    trace, original, session, targets, all_fetches, feeds, options, metadata
                )
            self._steps.add(begun, is_plain=False)
            self._guard(self._report, run, all_fetches, fetched, fed)
            return fetched[: len(fetches)]
        finally:
            self._asking.release()

    def _trace(self, run, begun, options):
        # type: (graphs.TrainingRun, float, Any) -> Optional[_Trace]
        """Return the trace to make of the next step; None: none is due."""
        name = self._trace_watch.due(self._steps.total())
        if name is None or traces.traces_itself(self._tf_session, options):
            return None
        return _Trace(name, self._context(run, begun), traces.Buffers(self._tf_session, options))

    def _context(self, run, begun):
        # type: (graphs.TrainingRun, float) -> Dict[str, Any]
        """Return what is known of a step that is to be traced."""
        return {
            "at": time.time(),
            "step": self._steps.total() + 1,
            "task": self._servers.task,
            "waited_seconds": self._steps.waited(begun) if run.is_fed else None,
            "untraced_step_microseconds": self._steps.step_microseconds(),
        }

    def _traced(self, trace, original, session, targets, wanted, feeds, options, metadata):
        # type: (_Trace, DoRun, Any, List[Any], List[Any], Any, Any, Any) -> List[Any]
        buffers = trace.buffers
        try:
            found = original(session, None, targets, wanted, feeds, buffers.options, buffers.metadata)
            self._guard(self._keep, trace)
            return found
        except Exception as error:
            if not _is_profiled(error):
                raise
            return original(session, None, targets, wanted, feeds, options, metadata)
        finally:
            self._guard(buffers.delete)

    def _keep(self, trace):
        # type: (_Trace) -> None
        self._trace_watch.keep(trace.name, trace.buffers.read(), trace.context)

    def _extras(self, run, fetches, fed):
        # type: (graphs.TrainingRun, List[Any], Dict[str, Any]) -> List[Any]
        """Return what to fetch with a step besides what the script fetches itself or feeds.

        A script may feed a value in place of one that is computed. Then the graph does not show what the run
        does, and only the global step is fetched.
        """
        own = {tensor.name for tensor in fetches}
        graph = run.graph()
        if graph is None:
            return []
        computed = [name for name in fed if graph.get_tensor_by_name(name).op.type not in graphs.PLACEHOLDERS]
        wanted = run.step_alone() if computed else run.tensors() + self._model.wanted(run)
        return [each for each in wanted if each.name not in own and each.name not in fed]

    def _report(self, run, fetched, values, fed):
        # type: (graphs.TrainingRun, List[Any], List[Any], Dict[str, Any]) -> None
        by_name = {tensor.name: value for tensor, value in zip(fetched, values)}
        by_name.update(fed)
        self._steps.report(run.read(by_name, fed), run.is_fed)
        self._model.take(run, by_name)
        if run.is_fed:
            self._inputs.note(fed)

    def _counted_callable(self, original, fetch_handler):
        # type: (Callable[..., Any], Any) -> Callable[..., Any]
        """Wrap ``make_callable``: the functions it returns bypass ``_do_run``."""

        @signatures.wraps(original)
        def make_callable(session, fetches, feed_list=None, accept_options=False):
            # type: (Any, Any, Any, Any) -> Any
            plain = original(session, fetches, feed_list, accept_options)
            if feed_list is not None:
                return plain  # It calls `run`, which is counted.
            run = self._guard(self._callable_kind, session._graph, fetches, fetch_handler)
            if run is None:
                return plain

            def traced():
                # type: () -> Callable[..., Any]
                options = self._config_pb2.RunOptions(trace_level=_FULL_TRACE)
                return functools.partial(original(session, fetches, None, True), options=options)

            return self._counting(plain, run, traced)

        return make_callable

    def _callable_kind(self, graph, fetches, fetch_handler):
        # type: (Any, Any, Any) -> Optional[graphs.TrainingRun]
        handler = fetch_handler(graph, fetches, {})
        return self._kind_once(graph, handler.targets(), handler.fetches())

    def _counted_options(self, original):
        # type: (Callable[..., Any]) -> Callable[..., Any]
        """Wrap ``_make_callable_from_options``, which takes the names of tensors and operations."""

        @signatures.wraps(original)
        def _make_callable_from_options(session, callable_options):
            # type: (Any, Any) -> Any
            plain = original(session, callable_options)
            run = self._guard(self._named_kind, session._graph, callable_options)
            if run is None:
                return plain

            def traced():
                # type: () -> Callable[..., Any]
                options = self._config_pb2.CallableOptions()
                options.CopyFrom(callable_options)
                options.run_options.trace_level = _FULL_TRACE
                call = original(session, options)  # type: Callable[..., Any]
                return call

            fetched, fed = tuple(callable_options.fetch), tuple(callable_options.feed)
            return self._counting(plain, run, traced, fetched, fed)

        return _make_callable_from_options

    def _named_kind(self, graph, options):
        # type: (Any, Any) -> Optional[graphs.TrainingRun]
        targets = [graph.as_graph_element(name) for name in options.target]
        tensors = [graph.get_tensor_by_name(name) for name in options.fetch]
        return self._kind_once(graph, targets, tensors)

    def _kind_once(self, graph, targets, tensors):
        # type: (Any, List[Any], List[Any]) -> Optional[graphs.TrainingRun]
        """Return what a run trains, analyzing it if its kind is new; None: it makes no step."""
        key = tuple(map(id, targets)) + tuple(map(id, tensors))
        try:
            return self._kinds[id(graph)][key]
        except KeyError:
            return self._kind(graph, key, targets, tensors)

    def _counting(self, plain, run, traced, fetched=(), fed=None):
        # type: (Callable[..., Any], graphs.TrainingRun, Traced, Names, Optional[Names]) -> Callable[..., Any]
        """Return a function that counts a step for each call. No further values can be fetched with the step.

        Args:
            plain: TensorFlow's function.
            run: what it trains.
            traced: makes a function that does the same and traces it into its ``run_metadata``.
            fetched: the names of what it returns, if it returns a list.
            fed: the names of what its arguments feed; None: they are the script's own options.
        """
        steps, guard = self._steps, self._guard
        tracer = _CallTracer(traced, self._config_pb2.RunMetadata, self._trace_watch)

        def report(arguments, found):
            # type: (Sequence[Any], Any) -> None
            feeds = {name: each for name, each in zip(fed or (), arguments) if hasattr(each, "ndim")}
            by_name = dict(zip(fetched, found)) if fetched else {}
            steps.report(run.read(by_name, feeds), run.is_fed)

        @functools.wraps(plain)
        def step(*arguments, **named):
            # type: (*Any, **Any) -> Any
            begun = clock()
            is_due = begun >= steps.due
            if not is_due and tracer.name is None:
                fetched = plain(*arguments, **named)
                steps.add(begun)
                return fetched
            metadata, context = None, {}  # type: Any, Dict[str, Any]
            if any(named.values()) or (bool(arguments) and fed is None):
                fetched = plain(*arguments, **named)
            else:
                guard(tracer.look, steps.total())
                if tracer.name is not None:
                    context = guard(self._context, run, begun) or {}
                fetched, metadata = tracer.step(plain, arguments)
            steps.add(begun)
            if is_due:
                guard(report, arguments, fetched)
            if metadata is not None:
                guard(tracer.keep, metadata, context)
            return fetched

        return step


class _CallTracer(object):
    """Traces steps that are calls of a function, through a second function that does the same.

    At its first call, all servers build the second function's graph. So the trace of that step is not kept;
    the step after it is a typical one.

    Args:
        make: makes the function whose steps are traced.
        metadata: makes the object that a step is traced into.
        watch: decides when a trace is due, and writes it.
    """

    def __init__(self, make, metadata, watch):
        # type: (Callable[[], Callable[..., Any]], Callable[[], Any], traces.TraceWatch) -> None
        self._make = make
        self._metadata = metadata
        self._watch = watch
        self._call = None  # type: Optional[Callable[..., Any]]
        self._is_built = False
        #: The name of the trace to make of the next step; None: none is due.
        self.name = None  # type: Optional[str]

    def look(self, steps):
        # type: (int) -> None
        """Check whether a trace is due after this many steps."""
        if self.name is None:
            name = self._watch.due(steps)
            if name is not None and self._call is None:
                self._call = self._make()
            self.name = name

    def step(self, plain, arguments):
        # type: (Callable[..., Any], Sequence[Any]) -> Tuple[Any, Any]
        """Make a step and return its result, and its trace if that is to be kept.

        The plain function makes the step if no trace is due, or if a profiler of the script's own is running.
        """
        if self.name is None or self._call is None:
            return plain(*arguments), None
        metadata = self._metadata()
        try:
            found = self._call(*arguments, run_metadata=metadata)
        except Exception as error:
            self.name = None
            if not _is_profiled(error):
                raise
            return plain(*arguments), None
        was_built, self._is_built = self._is_built, True
        return found, metadata if was_built else None

    def keep(self, metadata, context):
        # type: (Any, Dict[str, Any]) -> None
        """Write the trace of the step."""
        name, self.name = self.name, None
        if name is not None:
            self._watch.keep(name, metadata.SerializeToString(), context)


def _is_profiled(error):
    # type: (Exception) -> bool
    """Return whether a step failed because the script's own profiler runs, which takes precedence."""
    return type(error).__name__ == "AlreadyExistsError"


def _fed(feeds):
    # type: (Any) -> Dict[str, Any]
    """Return what a run is fed, by tensor name; newer TensorFlow versions use tensor references as keys."""
    found = {}
    for key, value in (feeds or {}).items():
        refers = getattr(key, "deref", None) or getattr(key, "experimental_deref", None)  # Before 2.2.
        found[(refers() if refers else key).name] = value
    return found
