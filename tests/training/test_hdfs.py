"""Data, checkpoints and models in a real HDFS whose nodes are killed, full, read-only or closed to a user."""

import threading
import time

import fsspec
import pytest
from support import hadoop, kills, prerequisites

from paceline.training import connections, errors
from paceline.training.checkpoints.checkpoint_mirrors import CheckpointMirror
from paceline.training.input import locations
from paceline.training.remote_folders import RemoteFolder

pytestmark = pytest.mark.slow
pytest.importorskip("hdfs_native")

#: A name as users give it: blanks, letters beyond ASCII, and what URLs give a meaning to.
NAME = "Klicks März 100%/día=1 #2.csv"


@pytest.fixture
def store(monkeypatch):
    """A new file system: clients are kept by their arguments, and ports are always the same."""
    forget_clients()
    with prerequisites.skipping(), hadoop.hdfs() as made:
        yield made
    forget_clients()


def forget_clients():
    """Have the next client be made anew; the class is that which Paceline has registered."""
    fsspec.get_filesystem_class("hdfs").clear_instance_cache()


def content(url, **how):
    with locations.opened(url, **how) as stream:
        return stream.read()


def in_a_moment(action):
    """Do something beside what the test does next."""
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_job_trains_from_hdfs_and_goes_on_from_its_copies_there(job, store, tiny_data, tmp_path):
    """The chief is killed and its folder lost, as on a node that is gone with its disk."""
    for path in tiny_data:
        store.put(f"/data/{path.name}", path.read_bytes())
    made = job(
        {
            "epochs": 60, "batch_size": 32, "export_dir": f"{store.url}/models/tiny",
            "checkpoint": {"every_seconds": 0.3, "mirror": f"{store.url}/checkpoints/tiny"},
        },
        ps=1,
        worker=1,
    )  # fmt: skip
    made.command[1:] = [f"{store.url}/data/train*", f"{store.url}/data/evaluation.csv"]
    made.start_all()
    mirror = CheckpointMirror(f"{store.url}/checkpoints/tiny")
    made.await_that(lambda: mirror.finished(), "a copy of a checkpoint")
    made.kill("worker", 0)
    copied = mirror.finished()[-1]
    kills.until(lambda: not [*made.checkpoint_dir.glob("*_temp*")])
    made.checkpoint_dir.rename(tmp_path / "lost")
    made.start("worker", 0, attempt=2)
    made.wait("worker", 0)
    assert f"fetched the checkpoint of step {copied} from {mirror.url}" in made.log("worker", 0)
    assert mirror.finished()[-1] >= copied
    model = RemoteFolder(f"{store.url}/models/tiny", errors.ExportError)
    assert sorted(model.names()) >= ["saved_model.pb", "variables"]
    copy = tmp_path / "model"
    (copy / "variables").mkdir(parents=True)
    model.get("saved_model.pb", copy / "saved_model.pb")
    variables = RemoteFolder(f"{store.url}/models/tiny/variables", errors.ExportError)
    for name in variables.names():
        variables.get(name, copy / "variables" / name)
    import tensorflow as tf

    assert "serving_default" in tf.saved_model.load(str(copy)).signatures


@pytest.mark.nightly
def test_names_versions_and_folders(store, tmp_path):
    whole, url = b"x,label\n" + b"1,0\n" * 500_000, f"{store.url}/{NAME}"
    folder = RemoteFolder(url.rpartition("/")[0], errors.ExportError)
    (tmp_path / "here").write_bytes(whole)
    folder.put(tmp_path / "here", url.rpartition("/")[2])
    assert content(url) == whole
    assert locations.matches(f"{store.url}/Klicks*") == [url]
    cache = locations.Cache(str(tmp_path / "cache"))
    assert content(url, cache=cache) == whole
    (tmp_path / "here").write_bytes(other := whole[::-1])
    folder.put(tmp_path / "here", url.rpartition("/")[2])
    assert content(url, cache=cache) == other, "as long as before, and changed"


@pytest.mark.nightly
def test_what_is_appended_while_it_is_read_is_not_read(store):
    store.put("/grows.csv", b"1" * 10_000_000)
    with locations.opened(f"{store.url}/grows.csv") as stream:
        begin = stream.read(1000)
        store.put("/grows.csv", b"2" * 1000, appends=True)
        assert begin + stream.read() == b"1" * 10_000_000
    assert content(f"{store.url}/grows.csv").endswith(b"12" + b"2" * 999)


@pytest.mark.nightly
@pytest.mark.parametrize("node", [hadoop.DATA_NODE, hadoop.NAME_NODE])
def test_reading_goes_on_after_a_node_was_away(store, node):
    store.put("/data.csv", b"0123456789" * 2_000_000)
    with locations.opened(f"{store.url}/data.csv") as stream:
        begin = stream.read(1000)
        store.kill(node)
        back = in_a_moment(lambda: (time.sleep(1.0), store.start(node)))
        assert begin + stream.read() == b"0123456789" * 2_000_000
        back.join()


@pytest.mark.nightly
@pytest.mark.parametrize("node", [hadoop.DATA_NODE, hadoop.NAME_NODE])
def test_a_copy_is_whole_after_a_node_was_away(store, node, tmp_path):
    folder = RemoteFolder(f"{store.url}/models", errors.ExportError)
    source = tmp_path / "model"
    source.write_bytes(b"0123456789" * 20_000_000)
    writing = in_a_moment(lambda: folder.put(source, "model"))
    kills.until(lambda: any(name.startswith(".model.temp") for name in folder.names()))
    store.kill(node)
    store.start(node)
    writing.join()
    assert folder.names() == ["model"]
    assert content(f"{store.url}/models/model") == source.read_bytes()


@pytest.mark.nightly
def test_what_does_not_pass_is_refused_with_path_and_reason(store, tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "_DELAYS_SECONDS", (0.01, 0.01))
    source = tmp_path / "model"
    source.write_bytes(b"m" * 5000)
    folder = RemoteFolder(f"{store.url}/models", errors.ExportError)
    folder.put(source, "first")

    def refused(reason):
        with pytest.raises(errors.ExportError, match=rf"/models/second: .*{reason}"):
            folder.put(source, "second")

    store.admin("-safemode", "enter")
    refused("[Ss]afe mode")
    assert content(f"{store.url}/models/first") == b"m" * 5000, "reading goes on"
    store.admin("-safemode", "leave")
    store.admin("-setSpaceQuota", "1k", "/models")
    refused("QuotaExceededException")
    store.admin("-clrSpaceQuota", "/models")
    assert folder.names() == ["first"]
    folder.put(source, "second")

    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    forget_clients()
    hers = RemoteFolder(f"{store.url}/models", errors.ExportError)
    with pytest.raises(
        errors.ExportError, match=r"/models/third: it cannot be written.*Permission denied: user=ann"
    ):
        hers.put(source, "third")
    with pytest.raises(errors.InputError, match=r"/none: there is no such file"):
        content(f"{store.url}/none")


@pytest.mark.nightly
def test_names_of_a_site(store, tmp_path, monkeypatch):
    """URLs without an address mean what the site's configuration says: two name nodes under one name."""
    store.put("/data.csv", b"x")
    (tmp_path / "core-site.xml").write_text(SITE.format(name="fs.defaultFS", value="hdfs://clicks"))
    properties = {
        "dfs.nameservices": "clicks",
        "dfs.ha.namenodes.clicks": "one,two",
        "dfs.namenode.rpc-address.clicks.one": "127.0.0.1:1",
        "dfs.namenode.rpc-address.clicks.two": "127.0.0.1:9820",
        "dfs.client.failover.proxy.provider.clicks": "org.apache.hadoop.hdfs.server.namenode.ha"
        ".ConfiguredFailoverProxyProvider",
    }
    whole = "".join(PROPERTY.format(name=name, value=value) for name, value in properties.items())
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{whole}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for url in ("hdfs://clicks/data.csv", "hdfs:///data.csv"):
        assert content(url) == b"x"


PROPERTY = "<property><name>{name}</name><value>{value}</value></property>"
SITE = f"<configuration>{PROPERTY}</configuration>"
