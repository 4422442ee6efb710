"""Paths that are no objects: over a server that answers as the API server and its proxy do."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import ClusterError, OutputLine

T = TypeVar("T")
FORBIDDEN = {"kind": "Status", "status": "Failure", "message": "pods is forbidden", "code": 403}

#: A bar of progress, a page and other ends of lines that are none, bytes that are no text, nothing, no end.
ODD = (
    b"2027-01-15T08:00:00Z 1/9 [=>]\r2/9 [==>]\n2027-01-15T08:00:01Z a\x0cb\x1cc\xe2\x80\xa8d\n"
    b"2027-01-15T08:00:02Z \xff\n2027-01-15T08:00:03Z \n2027-01-15T08:00:04Z 3/9"
)

UNREADABLE = b"unable to retrieve container logs for containerd://1"


#: Go does not escape U+0085 in JSON, and str.splitlines takes it for the end of a line.
NOTE = "one\u0085two\u2028three"
CHANGES = b"".join(
    json.dumps({"type": what, "object": {"metadata": {"name": "a", "annotations": {"note": NOTE}}}},
               ensure_ascii=False).encode() + b"\n"
    for what in ("ADDED", "DELETED")
)  # fmt: skip
OLD = json.dumps(
    {"type": "ERROR", "object": {"message": "too old resource version", "reason": "Expired", "code": 410}}
).encode() + b"\n"  # fmt: skip


#: The status and body of each answer.
WATCHES = {
    "/api/v1/namespaces/ml/configmaps": (200, CHANGES),
    "/apis/paceline.dev/v1alpha1/trainingjobs": (200, OLD),
    "/api/v1/pods": (200, b"<html>\n"),
    "/api/v1/nodes": (403, json.dumps(FORBIDDEN).encode()),
}


#: What something between here and the API server may answer to any request, by the namespace asked for.
PROXIED = {
    "signed-out": (200, b"<html>Please sign in"),
    "empty": (200, b""),
    "a-list": (200, b"[1]"),
    "a-text": (200, b'"ok"'),
    "no-object": (200, b'{"items": 5, "metadata": []}'),
    "no-status": (500, b"<html>Internal error"),
    "odd-status": (502, b'{"code": "what", "message": {}}'),
    "not-utf-8": (200, b'{"kind": "\xff"}'),
}
_OF_PROXY = re.compile(rf"/api/v1/namespaces/(?:{'|'.join(PROXIED)})/.*")


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if _OF_PROXY.match(path):
            return self._say_as_a_proxy()
        return self._say(*WATCHES[path]) if path in WATCHES else self._say_text(path, query)

    def _say_text(self, path: str, query: str) -> None:
        if path == "/spool":
            return self._say(200, f"{query}\n".encode() + b"x" * 1000)
        if path == "/said":
            return self._say(200, str(self.headers["Paceline-Token"]).encode())
        if path == "/packed":
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(gzip.compress(bytes(1 << 24)))
            return None
        if path == "/refused":
            return self._say(500, b"x" * (1 << 20))
        if path == "/forbidden":
            return self._say(403, json.dumps(FORBIDDEN).encode())
        if path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return None
        if path == "/api/v1/namespaces/ml/pods/worker/log":
            return self._say(200, b"".join(b"2027-01-15T08:00:%02dZ line %d\n" % (n, n) for n in range(60)))
        if path == "/api/v1/namespaces/ml/pods/odd/log":
            return self._say(200, query.encode() + b"\n" + ODD)
        if path == "/api/v1/namespaces/ml/pods/forbidden/log":
            return self._say(403, json.dumps(FORBIDDEN).encode())
        if path == "/api/v1/namespaces/ml/pods/gone/log":
            return self._say(200, UNREADABLE)
        return self._say(502, b"<html>bad gateway")

    def do_POST(self) -> None:
        if _OF_PROXY.match(self.path):
            return self._say_as_a_proxy()
        self._say(202, f"asked for {self.path}".encode())

    def do_PUT(self) -> None:
        self._say_as_a_proxy()

    do_PATCH = do_DELETE = do_PUT

    def _say_as_a_proxy(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._say(*PROXIED[self.path.split("/")[4]])

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def with_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [
            {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}
        ],
        "users": [{"name": "me", "user": {}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))

    def do(step: Callable[[RealCluster], Any]) -> Any:
        async def go() -> Any:
            cluster = RealCluster()
            try:
                return await step(cluster)
            finally:
                await cluster.close()

        return asyncio.run(go())

    yield do
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_path_is_read_with_its_query(with_cluster: Callable[..., Any]) -> None:
    found = with_cluster(lambda cluster: cluster.read("/spool?offset=7&again=5", limit_bytes=2000))
    assert found == b"offset=7&again=5\n" + b"x" * 1000
    assert with_cluster(lambda cluster: cluster.post("/traces/x")) == b"asked for /traces/x"


def test_more_than_is_wanted_is_refused(with_cluster: Callable[..., Any]) -> None:
    with pytest.raises(ClusterError, match="more than 100 bytes"):
        with_cluster(lambda cluster: cluster.read("/spool", limit_bytes=100))


def test_what_was_not_asked_for_is_not_unpacked(with_cluster: Callable[..., Any]) -> None:
    with pytest.raises(ClusterError, match="encoded as 'gzip', which was not requested"):
        with_cluster(lambda cluster: cluster.read("/packed", limit_bytes=1 << 30))


def test_of_a_long_refusal_the_beginning_is_read(with_cluster: Callable[..., Any]) -> None:
    with pytest.raises(ClusterError, match=r"^/refused cannot be read: x{200}$"):
        with_cluster(lambda cluster: cluster.read("/refused", limit_bytes=100))


def test_headers_are_passed_on(with_cluster: Callable[..., Any]) -> None:
    headers = {"Paceline-Token": "secret"}
    assert with_cluster(lambda cluster: cluster.read("/said", limit_bytes=10, headers=headers)) == b"secret"


def test_each_line_of_an_output_has_its_time(with_cluster: Callable[..., Any]) -> None:
    first, *lines = with_cluster(
        lambda cluster: cluster.logs("odd", "ml", "training", tail=7, since_seconds=5, last_bytes=10_000)
    )
    assert first.at == ""
    assert first.text == "container=training&timestamps=true&tailLines=7&sinceSeconds=5"
    assert [line.text for line in lines] == [
        "1/9 [=>]\r2/9 [==>]",
        "a\x0cb\x1cc\u2028d",
        "\ufffd",
        "",
        "3/9",
    ]
    assert [line.at for line in lines] == [f"2027-01-15T08:00:0{second}Z" for second in range(5)]
    assert [line.has_ended for line in lines] == [True, True, True, True, False]
    (said,) = with_cluster(lambda cluster: cluster.logs("gone", "ml", "training", last_bytes=99))
    assert said == OutputLine("", UNREADABLE.decode(), has_ended=False)
    with pytest.raises(ClusterError, match="the output of forbidden cannot be read: pods is forbidden"):
        with_cluster(lambda cluster: cluster.logs("forbidden", "ml", "training", last_bytes=99))


async def watched(cluster: RealCluster, kind: kinds.ResourceKind, namespace: str | None = None) -> Any:
    return [change async for change in cluster.watch(kind, "7", namespace=namespace)]


def test_a_line_of_a_watch_ends_with_a_line_feed_alone(with_cluster: Callable[..., Any]) -> None:
    found = with_cluster(lambda cluster: watched(cluster, kinds.CONFIG_MAPS, "ml"))
    assert [what for what, _ in found] == ["ADDED", "DELETED"]
    assert {each["metadata"]["annotations"]["note"] for _, each in found} == {NOTE}


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        (kinds.TRAINING_JOBS, "trainingjobs cannot be watched: too old resource version", 410),
        (kinds.PODS, "pods cannot be watched: what answers is no watch of Kubernetes", None),
        (kinds.NODES, "nodes cannot be watched: pods is forbidden", 403),
    ],
    ids=lambda given: str(getattr(given, "plural", "")),
)
def test_a_watch_that_cannot_go_on_says_why(
    with_cluster: Callable[..., Any], kind: kinds.ResourceKind, message: str, code: int | None
) -> None:
    with pytest.raises(ClusterError, match=message) as refused:
        with_cluster(lambda cluster: watched(cluster, kind))
    assert refused.value.code == code


@pytest.mark.parametrize(("last_bytes", "lines"), [(10**6, 60), (90, 3), (1, 0)])
def test_of_an_output_only_the_end_is_kept(
    with_cluster: Callable[..., Any], last_bytes: int, lines: int
) -> None:
    found = with_cluster(lambda cluster: cluster.logs("worker", "ml", "training", last_bytes=last_bytes))
    assert found == [OutputLine(f"2027-01-15T08:00:{n:02d}Z", f"line {n}") for n in range(60 - lines, 60)]


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [("/forbidden", 403, "pods is forbidden"), ("/other", 502, "bad gateway"), ("/cut", None, "not answer")],
)
def test_refusals_say_why(with_cluster: Callable[..., Any], path: str, code: int | None, says: str) -> None:
    with pytest.raises(ClusterError, match=says) as refused:
        with_cluster(lambda cluster: cluster.read(path, limit_bytes=1000))
    assert refused.value.code == code


async def _resized(cluster: RealCluster, namespace: str) -> Any:
    return await cluster.resize("a", namespace, "training", {})


VERBS: dict[str, Callable[[RealCluster, str], Any]] = {
    "list": lambda cluster, namespace: cluster.list(kinds.CONFIG_MAPS, namespace=namespace),
    "get": lambda cluster, namespace: cluster.get(kinds.CONFIG_MAPS, "a", namespace),
    "create": lambda cluster, namespace: cluster.create(kinds.CONFIG_MAPS, _made(namespace)),
    "replace": lambda cluster, namespace: cluster.replace(kinds.CONFIG_MAPS, _made(namespace)),
    "patch": lambda cluster, namespace: cluster.patch(kinds.CONFIG_MAPS, "a", namespace, {}),
    "resize": _resized,
}


def _made(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}


@pytest.mark.parametrize("answer", PROXIED)
def test_an_answer_that_is_not_the_api_servers_is_an_error_of_the_cluster(
    with_cluster: Callable[..., Any], answer: str
) -> None:
    """Something between may ask for a password, say that it is broken, or be another server."""

    async def refused(cluster: RealCluster) -> dict[str, str]:
        said = {}
        for verb, act in VERBS.items():
            with pytest.raises(ClusterError) as error:
                await act(cluster, answer)
            said[verb] = str(error.value)
        return said

    for verb, message in with_cluster(refused).items():
        assert message.startswith(("configmaps cannot", "ConfigMap a cannot", "Pod a cannot")), (
            verb,
            message,
        )


@pytest.mark.parametrize("answer", [each for each, (code, _) in PROXIED.items() if code >= 400])
def test_a_deletion_that_is_not_answered_by_the_api_server(
    with_cluster: Callable[..., Any], answer: str
) -> None:
    with pytest.raises(ClusterError, match="ConfigMap a cannot be deleted"):
        with_cluster(lambda cluster: cluster.delete(kinds.CONFIG_MAPS, "a", answer))
