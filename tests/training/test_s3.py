"""Data and copies in a store that speaks S3's protocol, is away for a while, or is closed to the user."""

import threading
import time

import pytest
from support.s3_stores import s3_server

from paceline.training import connections, errors
from paceline.training.input import locations
from paceline.training.remote_folders import RemoteFolder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture
def store():
    with s3_server() as made:
        import s3fs

        s3fs.S3FileSystem().mkdir("models")
        yield made


def put(name, content):
    import s3fs

    s3fs.S3FileSystem().pipe(f"models/{name}", content)


def away(store, *, seconds):
    """Have the store away for some time; return what ends when it is back."""
    store.stop()

    def back():
        time.sleep(seconds)
        store.start()

    thread = threading.Thread(target=back)
    thread.start()
    return thread


def test_reading_goes_on_after_the_store_was_away(store):
    content = b"0123456789" * 2_000_000
    put("data.csv", content)
    with locations.opened("s3://models/data.csv") as stream:
        begin = stream.read(1000)
        back = away(store, seconds=1.0)
        assert begin + stream.read() == content
        back.join()


def test_a_copy_is_whole_after_the_store_was_away(store, tmp_path):
    source = tmp_path / "model"
    source.write_bytes(b"0123456789" * 2_000_000)
    folder = RemoteFolder("s3://models/clicks", errors.ExportError)
    back = away(store, seconds=1.0)
    folder.put(source, "model")
    back.join()
    assert folder.names() == ["model"]
    folder.get("model", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


def test_what_does_not_pass_is_refused_with_path_and_reason(store, tmp_path, monkeypatch):
    import s3fs

    monkeypatch.setattr(connections, "_DELAYS_SECONDS", (0.01,))
    source = tmp_path / "model"
    source.write_bytes(b"m" * 5000)
    folder = RemoteFolder("s3://models/clicks", errors.ExportError)
    store.stop()
    with pytest.raises(errors.ExportError, match=r"/clicks/model: the connection was lost 2 times in a row"):
        folder.put(source, "model")
    store.start()
    with pytest.raises(errors.ExportError, match=r"s3://none/clicks/model: .*bucket"):
        RemoteFolder("s3://none/clicks", errors.ExportError).put(source, "model")
    with (
        pytest.raises(errors.InputError, match=r"/none: there is no such file"),
        locations.opened("s3://models/none"),
    ):
        pass
    store.post("reset-auth", b"0")  # From now on the key is looked at, and it is not known.
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(errors.ExportError, match=r"/clicks/model: it cannot be written \(.*"):
        RemoteFolder("s3://models/clicks", errors.ExportError).put(source, "model")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(errors.ExportError, match=r"/clicks/model: it cannot be written \(.*credentials"):
        RemoteFolder("s3://models/clicks", errors.ExportError).put(source, "model")
