"""Copies of checkpoints elsewhere: what is copied, what is fetched, and what is refused."""

import logging
import shutil

import pytest

from paceline.training import errors
from paceline.training.checkpoints import checksums
from paceline.training.checkpoints.checkpoint_folders import Folder
from paceline.training.checkpoints.checkpoint_mirrors import CheckpointMirror

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    made = Folder(str(tmp_path / "checkpoints"))
    made.prepare()
    return made


@pytest.fixture
def mirror(tmp_path):
    return CheckpointMirror(f"file://{tmp_path}/copies")


def save(folder, step, keep=2):
    """Files as TensorFlow writes them, of which only the names and the bytes matter here."""
    for rest in ("index", "data-00000-of-00001"):
        with open(f"{folder.prefix(step)}.{rest}", "wb") as file:
            file.write(f"{step} {rest}".encode() * 100)
    folder.seal(step, keep)


def another(tmp_path):
    made = Folder(str(tmp_path / "elsewhere"))
    made.prepare()
    return made


def test_the_newest_are_copied_and_fetched(folder, mirror, tmp_path):
    for step in (1, 2, 3):
        save(folder, step)
        mirror.put(folder, step, keep=2)
        mirror.put(folder, step, keep=2)  # It is there.
    assert mirror.finished() == [2, 3]
    assert sorted(each.name for each in (tmp_path / "copies").iterdir()) == [
        "checkpoint", *(f"model.ckpt-{step}.{rest}" for step in (2, 3)
                        for rest in ("checksums.json", "data-00000-of-00001", "index")),
    ]  # fmt: skip
    new = another(tmp_path)
    assert mirror.fetch(new) == 3
    assert mirror.fetch(new) is None
    assert new.finished() == [3]
    checksums.check(new.prefix(3))


def test_an_evaluator_without_the_chiefs_folder_has_only_the_newest_copy(folder, mirror, tmp_path):
    from paceline.training.checkpoints import checkpoints

    own = tmp_path / "evaluator" / "checkpoints"
    evaluators = checkpoints.Checkpoints(str(own), None, 60.0, mirror.url)
    evaluators.fetch()
    assert evaluators.latest() is None
    for step in (1, 2, 3):
        save(folder, step)
        mirror.put(folder, step, keep=2)
        evaluators.fetch()
        evaluators.fetch()
        assert Folder(str(own)).finished() == [step]
    assert len(list(own.iterdir())) == 3


def test_what_was_there_before_stays_when_a_copy_is_fetched(folder, mirror, tmp_path):
    from paceline.training.checkpoints import checkpoints

    shared = another(tmp_path)
    save(shared, 1)
    fetching = checkpoints.Checkpoints(shared.path, None, 60.0, mirror.url)
    for step in (2, 3):
        save(folder, step)
        mirror.put(folder, step, keep=2)
        fetching.fetch()
        assert shared.finished() == [1, step]


def test_a_folder_without_its_last_checkpoint_gets_it(folder, mirror, tmp_path):
    save(folder, 1)
    old = another(tmp_path)
    shutil.copytree(folder.path, old.path, dirs_exist_ok=True)
    save(folder, 2)
    mirror.put(folder, 2, keep=2)
    assert mirror.fetch(old) == 2
    assert old.finished() == [1, 2]


def test_a_damaged_copy_is_passed_over(folder, mirror, tmp_path, caplog):
    for step in (1, 2):
        save(folder, step)
        mirror.put(folder, step, keep=2)
    (tmp_path / "copies" / "model.ckpt-2.index").write_bytes(b"2 index" * 99 + b"2 inde?")
    new = another(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert mirror.fetch(new) == 1
    assert new.finished() == [1]
    assert "model.ckpt-2.index has the CRC-32" in caplog.text
    assert "it is not fetched" in caplog.text


def test_half_a_copy_does_not_count_and_is_removed(folder, mirror, tmp_path):
    """A chief was killed while it wrote the data of step 2, before their checksums."""
    save(folder, 1)
    mirror.put(folder, 1, keep=2)
    for name in ("model.ckpt-2.index", ".model.ckpt-2.data-00000-of-00001.temp0f"):
        (tmp_path / "copies" / name).write_bytes(b"half")
    assert mirror.finished() == [1]
    save(folder, 3)
    mirror.put(folder, 3, keep=2)
    assert not [*(tmp_path / "copies").glob("*ckpt-2*")]
    assert mirror.finished() == [1, 3]


def test_copies_of_another_run_are_refused(folder, mirror, tmp_path):
    from paceline.training.checkpoints import checkpoints

    save(folder, 7)
    mirror.put(folder, 7, keep=2)

    def begun(name, **how):
        made = checkpoints.Checkpoints(str(tmp_path / name), None, 60.0, mirror.url)
        made.prepare(**how)
        return made.latest()

    with pytest.raises(
        errors.CheckpointError, match=r"copies: it has checkpoints of another run, up to step 7"
    ):
        begun("new")
    assert begun("later", is_first=False) == str(tmp_path / "later" / "model.ckpt-7")
    assert begun("on", restore_from=mirror.url + "/") == str(tmp_path / "on" / "model.ckpt-7")


def test_a_run_does_not_begin_from_nothing(tmp_path):
    from paceline.training.checkpoints import checkpoints

    made = checkpoints.Checkpoints(str(tmp_path / "new"), None, 60.0)
    with pytest.raises(errors.CheckpointError, match=r"empty: there is no checkpoint to begin from"):
        made.prepare(restore_from=f"file://{tmp_path}/empty")
