"""The tracer around real steps, in one process."""

import itertools
import json
import threading
from concurrent import futures

import pytest

from paceline.model.traces import traced_steps as model
from paceline.sources import traces as sources
from paceline.training import clusters, errors, settings
from paceline.training.tracing import trace_schedules

pytestmark = pytest.mark.slow

ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)


@pytest.fixture(autouse=True)
def looks_at_every_step(monkeypatch):
    """These steps are too short to look twice a second alone."""
    monkeypatch.setattr(trace_schedules, "POLL_SECONDS", 0.0)


@pytest.fixture
def session():
    """A session of a small computation, its placeholder and result."""
    import tensorflow.compat.v1 as tf1

    with tf1.Graph().as_default() as graph:
        given = tf1.placeholder(tf1.float32, [None])
        product = given * 2.0
        made = tf1.Session(graph=graph)
    yield made, given, product
    made.close()


def tracer(run_dir, **chosen):
    from paceline.training.tracing import traces

    return traces.Tracer(ALONE, settings.TraceSettings(**chosen), run_dir and str(run_dir))


def written(run_dir):
    """The traces that are there once the threads that write them have ended."""
    for thread in threading.enumerate():
        if thread.name == "traces":
            thread.join()
    return [trace for name in sources.names(run_dir) for trace in sources.read(run_dir, name).traces]


def test_a_script_of_its_own_leaves_traces(session, tmp_path):
    made, given, product = session
    mine = tracer(tmp_path, every_seconds=3600, steps=3)
    for number in range(40):
        assert mine.run(made, product, {given: [float(number)]}).tolist() == [2.0 * number]
    (trace,) = written(tmp_path)
    steps = [split.step for split in trace.splits]
    assert steps == list(range(steps[0], steps[0] + 3))
    assert steps[0] >= 20
    assert trace.untraced_step_microseconds > 0
    assert {event.kind for event in trace.events} >= {"Mul"}
    assert trace.transfers == ()


def test_overlapping_steps_are_traced_whole(session, tmp_path):
    made, given, product = session
    waits = itertools.count()
    mine = tracer(tmp_path, every_seconds=3600, steps=4)
    step = mine.callable(made, [product], [given], lambda: next(waits) / 10)
    results = []
    with futures.ThreadPoolExecutor(3) as pool:
        # While one thread's step is traced the others' are not, and may be many.
        while not sources.names(tmp_path) and len(results) < 60_000:
            batch = range(len(results), len(results) + 60)
            results += pool.map(lambda number: step([float(number)]), batch)
    assert [result[0].tolist() for result in results] == [[2.0 * n] for n in range(len(results))]
    (trace,) = written(tmp_path)
    assert len({split.step for split in trace.splits}) == 4
    assert all(split.input_wait_microseconds >= 0 for split in trace.splits)


def test_a_request_is_answered(session, tmp_path):
    made, given, product = session
    name = model.name_at(1e9)
    (tmp_path / model.FOLDER).mkdir()
    (tmp_path / model.FOLDER / model.REQUEST).write_text(name)
    mine = tracer(tmp_path, every_seconds=0)
    for _ in range(5):
        mine.run(made, product, {given: [1.0]})
    assert len(written(tmp_path)) == 1
    assert sources.names(tmp_path) == [name]


def test_a_failed_step_is_not_kept(session, tmp_path):
    import tensorflow as tf

    made, given, product = session
    mine = tracer(tmp_path, every_seconds=3600, steps=1)
    for _ in range(19):
        mine.run(made, product, {given: [1.0]})
    with made.graph.as_default():
        fails = tf.debugging.Assert(given[0] > 1.0, [given])
    with pytest.raises(tf.errors.InvalidArgumentError):
        mine.run(made, fails, {given: [1.0]})
    assert mine.run(made, product, {given: [1.0]}).tolist() == [2.0]
    assert written(tmp_path) == []


def test_a_step_beside_the_scripts_own_profiler_is_made_up_for(session, tmp_path):
    import tensorflow as tf

    made, given, product = session
    mine = tracer(tmp_path, every_seconds=3600, steps=2)
    refused = iter(range(3))

    class Profiled:
        def run(self, *asked, **options):
            if options and next(refused, None) is not None:
                raise tf.errors.AlreadyExistsError(None, None, "another profiler runs")
            return made.run(*asked, **options)

    for _ in range(40):
        assert mine.run(Profiled(), product, {given: [1.0]}).tolist() == [2.0]
    (trace,) = written(tmp_path)
    assert len(trace.splits) == 2


def test_without_a_folder_nothing_is_traced(session, tmp_path, monkeypatch):
    made, given, product = session
    monkeypatch.chdir(tmp_path)
    mine = tracer(None, every_seconds=0.001)
    for _ in range(30):
        mine.run(made, product, {given: [1.0]})
    assert list(tmp_path.iterdir()) == []


def test_the_environment_says_who_traces(tmp_path):
    from paceline.training.tracing import traces

    with pytest.raises(errors.ClusterTaskError, match="TF_CONFIG"):
        traces.Tracer.from_environment({})
    config = {"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}
    mine = traces.Tracer.from_environment(
        {"TF_CONFIG": json.dumps(config), "PACELINE_RUN_DIR": str(tmp_path)}
    )
    assert isinstance(mine, traces.Tracer)


def test_a_trainer_of_a_job_traces_by_the_models_names(job, tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_RUN_DIR", str(tmp_path))
    processes = job({"batch_size": 32, "epochs": 1000, "trace": {"every_seconds": 1}}, ps=1, worker=1)
    processes.start_all()
    processes.await_that(lambda: sources.names(tmp_path), "a trace")
    (trace,) = sources.read(tmp_path, sources.names(tmp_path)[0]).traces
    assert trace.trainer == "worker-0"
    moved = {(each.variable, each.direction.value) for each in trace.transfers}
    tables = {each for each in moved if each[0] == "deep/vectors/0"}
    assert {direction for _, direction in tables} == {"ids", "pull", "push"}
    assert ("deep/layer0/kernel", "pull") in moved
    assert None not in {name for name, _ in moved}
