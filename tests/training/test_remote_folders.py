"""Folders by URL: whole files under their final names, on this machine and in an object store."""

import contextlib

import pytest
from support.s3_stores import s3_store

from paceline.training import errors
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


def test_what_the_url_needs_is_named():
    with pytest.raises(errors.ExportError, match=r"nowhere://x: Protocol not known: nowhere"):
        RemoteFolder("nowhere://x", errors.ExportError)
