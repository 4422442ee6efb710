"""Folders by URL: whole files under their final names, on this machine and in an object store."""

import contextlib

import pytest
from support.s3_stores import s3_store

from paceline.training import connections, errors
from paceline.training.remote_folders import RemoteFolder


@contextlib.contextmanager
def a_folder_here(tmp_path):
    yield f"file://{tmp_path}/remote"


@contextlib.contextmanager
def an_object_store(tmp_path):
    with s3_store("models"):
        yield "s3://models/clicks"


@pytest.fixture(params=[a_folder_here, pytest.param(an_object_store, marks=pytest.mark.slow)])
def url(request, tmp_path):
    with request.param(tmp_path) as made:
        yield made


@pytest.fixture
def source(tmp_path):
    made = tmp_path / "source"
    (made / "variables").mkdir(parents=True)
    (made / "variables" / "data").write_bytes(b"d" * 1000)
    (made / "model.pb").write_bytes(b"m" * 10)
    return made


def test_files_come_and_go(url, source, tmp_path):
    folder = RemoteFolder(url, errors.ExportError)
    assert folder.names() == []
    for name in ("a", "b c", "ü"):
        folder.put(source / "model.pb", name)
    folder.put(source / "variables" / "data", "a")
    assert sorted(folder.names()) == ["a", "b c", "ü"]
    folder.get("a", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"d" * 1000
    folder.remove("a")
    folder.remove("a")
    assert sorted(folder.names()) == ["b c", "ü"]
    assert folder.has("ü")
    assert not folder.has("a")


def test_a_folder_takes_the_place_of_another(url, source, tmp_path):
    folder = RemoteFolder(url, errors.ExportError)
    folder.put(source / "model.pb", "of another model")
    for _ in range(2):
        folder.put_folder(source, "model.pb")
    assert sorted(folder.names()) == ["model.pb", "variables"]
    folder.get("variables/data", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"d" * 1000


def test_half_a_file_has_no_final_name(tmp_path, source, monkeypatch):
    """The disk is full after some bytes: what is there is as it was, and what was begun is gone."""
    folder = RemoteFolder(f"file://{tmp_path}/remote", errors.ExportError)
    folder.put(source / "model.pb", "a")

    def written(stream, target, chunk):
        target.write(b"half")
        raise PermissionError(28, "no space left")

    monkeypatch.setattr("paceline.training.remote_folders.shutil.copyfileobj", written)
    with pytest.raises(errors.ExportError, match=r"remote/a: it cannot be written"):
        folder.put(source / "variables" / "data", "a")
    assert folder.names() == ["a"]
    assert (tmp_path / "remote" / "a").read_bytes() == b"m" * 10


class Renaming:
    """A folder of this machine of which some renames are refused.

    Args:
        refused: the numbers of the renames, from 0, that are refused.
        done: the numbers of the renames of which only the answer is lost.
    """

    def __init__(self, tmp_path, monkeypatch, *, refused=(), done=()):
        self.folder = RemoteFolder(f"file://{tmp_path}/place/remote", errors.ExportError)
        self._rename, self._refused, self._done, self._count = self.folder._system.mv, refused, done, -1
        monkeypatch.setattr(connections, "_DELAYS_SECONDS", (0.0,))
        monkeypatch.setattr(self.folder._system, "mv", self.mv)

    def mv(self, old, new):
        self._count += 1
        if self._count in self._refused:
            raise OSError(5, "Input/output error")
        self._rename(old, new)
        if self._count in self._done:
            raise OSError(104, "Connection reset by peer")


@pytest.fixture
def place(tmp_path):
    """A folder with an old model, as `Renaming` has it."""
    made = tmp_path / "place" / "remote"
    made.mkdir(parents=True)
    (made / "model.pb").write_text("old")
    return made


def put_folder(folder, source):
    """Rename the two files of the new folder, the old folder and the new folder."""
    folder.put_folder(source, "model.pb")


def put_file(folder, source):
    """Rename the old file and the new file."""
    folder.put(source / "model.pb", "model.pb")


@pytest.mark.parametrize(("put", "refused"), [(put_file, (1, 2)), (put_folder, (3, 4))])
def test_what_was_there_stays_if_nothing_takes_its_place(tmp_path, place, source, monkeypatch, put, refused):
    renaming = Renaming(tmp_path, monkeypatch, refused=refused)
    with pytest.raises(errors.ExportError, match="the connection was lost 2 times"):
        put(renaming.folder, source)
    assert [each.name for each in place.parent.iterdir()] == ["remote"]
    assert {each.name: each.read_text() for each in place.iterdir()} == {"model.pb": "old"}


@pytest.mark.parametrize(
    ("put", "disturbance"),
    [
        (put_file, {"refused": (1,)}),
        (put_file, {"done": (0,)}),
        (put_file, {"done": (1,)}),
        (put_folder, {"refused": (3,)}),
        (put_folder, {"done": (2,)}),
        (put_folder, {"done": (3,)}),
    ],
)
def test_of_a_second_try_nothing_old_is_left(tmp_path, place, source, monkeypatch, put, disturbance):
    put(Renaming(tmp_path, monkeypatch, **disturbance).folder, source)
    assert [each.name for each in place.parent.iterdir()] == ["remote"]
    assert {each.name for each in place.iterdir()} <= {"model.pb", "variables"}
    assert (place / "model.pb").read_bytes() == b"m" * 10


def test_what_the_url_needs_is_named():
    with pytest.raises(errors.ExportError, match=r"nowhere://x: Protocol not known: nowhere"):
        RemoteFolder("nowhere://x", errors.ExportError)
