import os
import signal
import subprocess
import sys

import pytest

from paceline.training import errors

pytestmark = pytest.mark.slow


def one_variable(name, rows):
    """What a checkpoint of one variable holds, in the current graph."""
    import tensorflow.compat.v1 as tf1

    from paceline.model.variables import variable_plans, variables
    from paceline.training import parameters, settings
    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import optimizers

    plan = variable_plans.plan(
        [variables.Variable(name=name, shape=(rows,))],
        servers=1,
        cut=variable_plans.RowPartitioning(strategy=variable_plans.CutStrategy.NONE),
        rule=variable_plans.PlacementRule.ROUND_ROBIN,
    )
    rules = {"deep": optimizers.rule(settings.Optimizer("adagrad"))}
    created = parameters.create(plan, {name: tf1.zeros_initializer()}, {name: "deep"}, rules, lambda _: "")
    return checkpoints.contents(created, tf1.train.create_global_step(), 2)


@pytest.fixture
def counter():
    """A graph of one variable."""
    import tensorflow.compat.v1 as tf1

    graph = tf1.Graph()
    with graph.as_default():
        contents = one_variable("value", 1000)
        initialise = tf1.global_variables_initializer()
    with tf1.Session(graph=graph) as session:
        session.run(initialise)
        yield session, contents.parameters[0].variable, contents


def folder(path, contents, every_seconds=60.0):
    from paceline.training.checkpoints import checkpoints

    made = checkpoints.Checkpoints(str(path), contents, every_seconds)
    made.prepare()
    return made


def files(path):
    return sorted(each.name for each in path.glob("*.index"))


def test_save_and_restore(tmp_path, counter):
    from paceline.training.checkpoints import checkpoints

    session, value, contents = counter
    saved = folder(tmp_path / "new", contents)
    assert saved.restore(session) is None
    value.load([1.0] * 1000, session)
    saved.save(session, 5)
    value.load([2.0] * 1000, session)
    restored = saved.restore(session)
    assert checkpoints.step_of(restored) == 5
    assert session.run(value.read_value())[0] == 1.0


def test_the_newest_are_kept_over_a_restart_and_a_move(tmp_path, counter):
    session, _, contents = counter
    saved = folder(tmp_path / "a", contents)
    for step in (1, 2, 3):
        saved.save(session, step)
    assert files(tmp_path / "a") == ["model.ckpt-2.index", "model.ckpt-3.index"]
    (tmp_path / "a").rename(tmp_path / "b")
    again = folder(tmp_path / "b", contents)
    assert again.latest().endswith("model.ckpt-3")
    again.save(session, 4)
    assert files(tmp_path / "b") == ["model.ckpt-3.index", "model.ckpt-4.index"]


def test_what_a_killed_chief_left_is_removed(tmp_path, counter):
    session, _, contents = counter
    folder(tmp_path, contents).save(session, 1)
    rest = tmp_path / "model.ckpt-2.data-00000-of-00001.tempstate123"
    rest.write_bytes(b"half")
    assert folder(tmp_path, contents).latest().endswith("model.ckpt-1")
    assert not rest.exists()


def test_saving_is_timed(tmp_path, counter):
    session, _, contents = counter
    patient = folder(tmp_path, contents, every_seconds=1000)
    patient.save_if_due(session, 1)
    patient.settle()
    assert patient.latest() is None
    eager = folder(tmp_path, contents, every_seconds=0)
    eager.save_if_due(session, 2)
    eager.settle()
    assert eager.latest().endswith("-2")


def test_without_a_folder_nothing_is_saved(counter):
    from paceline.training.checkpoints import checkpoints

    session, _, contents = counter
    saved = checkpoints.Checkpoints(None, contents, 0)
    saved.prepare()
    saved.save(session, 1)
    assert saved.latest() is None
    assert saved.restore(session) is None


def test_a_checkpoint_of_another_model_is_refused(tmp_path, counter):
    import tensorflow.compat.v1 as tf1

    session, _, contents = counter
    folder(tmp_path, contents).save(session, 1)
    for name, size in (("value", 7), ("other", 1000)):
        with tf1.Graph().as_default() as graph:
            other = folder(tmp_path, one_variable(name, size))
            with (
                tf1.Session(graph=graph) as another,
                pytest.raises(errors.CheckpointError, match="does not fit this model"),
            ):
                other.restore(another)


def saved_steps(path, counter, *steps):
    """A folder with a checkpoint of each step, all values of which are that step."""
    session, value, contents = counter
    saved = folder(path, contents)
    for step in steps:
        value.load([float(step)] * 1000, session)
        saved.save(session, step)
    return saved


def restored(saved, counter):
    session, value, _ = counter
    value.load([0.0] * 1000, session)
    saved.restore(session)
    return int(session.run(value.read_value())[0])


FILES = (".index", ".data-00000-of-00001", ".checksums.json")


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, counter, caplog, suffix, damage):
    saved = saved_steps(tmp_path, counter, 1, 2)
    path = tmp_path / f"model.ckpt-2{suffix}"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flipped" else content[:-5])
    caplog.set_level("INFO")
    if (suffix, damage) == (".checksums.json", "missing"):  # as of another program
        assert restored(saved, counter) == 2
        assert "model.ckpt-2 has no checksum file" in caplog.text
        return
    assert restored(saved, counter) == 1
    assert "model.ckpt-2." in caplog.text
    assert f"{tmp_path}/model.ckpt-1 is used instead" in caplog.text
    session, value, _ = counter
    value.load([2.0] * 1000, session)
    saved.save(session, 2)  # the step comes again
    assert restored(saved, counter) == 2


def test_one_that_goes_while_it_is_read_is_damaged(tmp_path, counter, monkeypatch):
    """An evaluator may read what the chief removes meanwhile, because a newer one is there."""
    session, _, contents = counter
    saved = folder(tmp_path, contents)
    saved.save(session, 1)
    restore = type(contents.saver).restore

    def too_late(*arguments, **named):
        for path in tmp_path.glob("model.ckpt-1*"):
            path.unlink()
        return restore(*arguments, **named)

    monkeypatch.setattr(type(contents.saver), "restore", too_late)
    with pytest.raises(errors.DamagedError, match="cannot be read"):
        saved.restore(session, saved.latest())


@pytest.mark.parametrize("content", [None, b"", b"model_ch\xff", b'model_checkpoint_path: "model.ckpt-9"'])
def test_without_a_list_of_checkpoints_they_are_found(tmp_path, counter, content):
    saved_steps(tmp_path, counter, 1, 2)
    (tmp_path / "checkpoint").unlink()
    if content is not None:
        (tmp_path / "checkpoint").write_bytes(content)
    assert restored(folder(tmp_path, counter[2]), counter) == 2


def test_when_none_is_left_it_does_not_start_anew(tmp_path, counter):
    saved = saved_steps(tmp_path, counter, 1, 2)
    for step in (1, 2):
        (tmp_path / f"model.ckpt-{step}.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(errors.CheckpointError, match=r"no checkpoint in .* can be used: .*-2.* 0 bytes.*-1"):
        saved.restore(counter[0])
    for file in tmp_path.glob("model*"):
        file.unlink()
    with pytest.raises(errors.CheckpointError, match=r"model.ckpt-2.index is missing|cannot be read"):
        saved.restore(counter[0])


def test_a_damaged_checkpoint_is_removed_when_the_next_is_there(tmp_path, counter):
    saved = saved_steps(tmp_path, counter, 1, 5)
    (tmp_path / "model.ckpt-5.index").unlink()
    assert restored(saved, counter) == 1
    assert list(tmp_path.glob("model.ckpt-5*"))
    saved.save(counter[0], 3)
    assert sorted({each.name.split(".")[1] for each in tmp_path.glob("model*")}) == ["ckpt-1", "ckpt-3"]


def test_a_checkpoint_of_which_only_the_checksums_are_missing_is_the_last_resort(tmp_path, counter):
    saved_steps(tmp_path, counter, 7)
    (tmp_path / "checkpoint").unlink()
    (tmp_path / "model.ckpt-7.checksums.json").unlink()  # the chief was killed while it made them
    saved = folder(tmp_path, counter[2])
    assert saved.latest() is None
    assert restored(saved, counter) == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_stops_nothing_and_is_tried_again(tmp_path, counter, caplog):
    session, value, contents = counter
    tmp_path = tmp_path / "disk"
    tmp_path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", tmp_path], check=True)
    try:
        saved = saved_steps(tmp_path, counter, 1)
        before = sorted(each.name for each in tmp_path.iterdir())
        filler = tmp_path / "filler"
        for free in (0, 4096, 8192):  # a checkpoint has 4 KB of values and a few small files
            filled = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_bsize - free
            filler.write_bytes(bytes(filled))
            value.load([2.0] * 1000, session)
            eager = folder(tmp_path, contents, every_seconds=0)
            eager.save_if_due(session, 2)
            eager.settle()
            assert "step 2 could not be saved" in caplog.text
            assert "No space left" in caplog.text
            filler.unlink()
            assert sorted(each.name for each in tmp_path.iterdir()) == before
            filler.write_bytes(bytes(filled))
            with pytest.raises(errors.CheckpointError, match=r"No space left.*the last checkpoint there is"):
                eager.save(session, 2)
            filler.unlink()
            caplog.clear()
        assert restored(saved, counter) == 1
        value.load([2.0] * 1000, session)
        eager.save_if_due(session, 2)
        eager.settle()
        assert restored(saved, counter) == 2
    finally:
        subprocess.run(["umount", tmp_path], check=True)


SAVE_FOR_EVER = """
import sys
import tensorflow.compat.v1 as tf1
from paceline.training.checkpoints import checkpoints
from training.checkpoints.test_checkpoints import one_variable
with tf1.Graph().as_default() as graph:
    contents = one_variable("value", 2_000_000)
    value = contents.parameters[0].variable
    with tf1.Session(graph=graph) as session:
        session.run(tf1.global_variables_initializer())
        saved = checkpoints.Checkpoints(sys.argv[1], contents, 0)
        saved.prepare()
        for step in range(1_000_000):
            value.load([float(step)] * 2_000_000, session) if step % 10 == 0 else None
            saved.save(session, step)
            print(step, flush=True)
"""


def test_a_chief_killed_while_it_saves_leaves_a_whole_checkpoint(tmp_path):
    import tensorflow as tf

    from paceline.training.checkpoints import checkpoints

    for kill_after in (1, 3):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "tests"])},
        )
        try:
            for _ in range(kill_after):
                assert process.stdout.readline()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        newest = checkpoints.Checkpoints(str(tmp_path), None, 0).latest()
        values = tf.train.load_checkpoint(newest).get_tensor("value")
        assert (values == values[0]).all()
