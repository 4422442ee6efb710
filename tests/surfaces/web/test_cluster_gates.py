"""Who asks a server on a cluster, and what they may: by the word of an API server in memory."""

from __future__ import annotations

import asyncio
import collections
import functools
import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from support import cluster_sites
from support.cluster_sites import NAMESPACE, OTHER
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import loops
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.loops import Loop
from paceline.surfaces.web import cluster_gates, guards, memories
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.cluster_gates import SECRET_HEADER, KubernetesGate, ProxyGate
from paceline.surfaces.web.gates import Caller, Credentials, Gate
from paceline.surfaces.web.memories import Memory
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.origins import Proxies

OURS = Proxies.parse(["10.0.0.0/8"])
SECRET = "a-secret-of-the-proxy-and-ours"


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    cluster_sites.fill(made.access)
    return made


@pytest.fixture
def loop() -> Iterator[Loop]:
    with loops.threaded() as made:
        yield made


@pytest.fixture
def gate(cluster: MemoryCluster, loop: Loop, clock) -> KubernetesGate:
    return KubernetesGate(cluster, loop, clock)


def reviews(cluster: MemoryCluster, plural: str) -> int:
    return sum(what == f"{plural}/" for _, what in cluster.calls)


def test_a_token_says_who_asks(cluster: MemoryCluster, gate: KubernetesGate) -> None:
    cluster.access.add("t", "ann", "ads-team", uid="7", extra={"scopes": ["jobs"]})
    found = gate.caller(Credentials("t"))
    groups = ("ads-team", "system:authenticated")
    assert found == Caller("ann", groups, "7", (("scopes", ("jobs",)),))
    assert found is not None
    assert not gate.allows(found, ApiOperation.GET, NAMESPACE)
    cluster.calls.clear()
    gate.allows(found, ApiOperation.STOP, OTHER)
    assert reviews(cluster, "subjectaccessreviews") == 1


@pytest.mark.parametrize("token", [None, "", "unknown", "a\nb", "a b\t", "\u00fc", "x" * 20_000])
def test_what_is_no_token_lets_no_caller_in(gate: KubernetesGate, token: str | None) -> None:
    assert gate.caller(Credentials(token)) is None


def test_headers_are_not_believed(gate: KubernetesGate) -> None:
    headers = {"x-forwarded-user": "root", "x-forwarded-groups": "system:masters"}
    assert gate.caller(Credentials(None, headers, "10.0.0.1")) is None


def test_answers_count_for_some_seconds(cluster: MemoryCluster, gate: KubernetesGate, clock) -> None:
    token = cluster_sites.token("view")
    for _ in range(50):
        caller = gate.caller(Credentials(token))
        assert caller is not None
        assert gate.allows(caller, ApiOperation.GET, NAMESPACE)
        assert not gate.allows(caller, ApiOperation.DELETE, NAMESPACE)
    assert reviews(cluster, "tokenreviews") == 1
    assert reviews(cluster, "subjectaccessreviews") == 2
    del cluster.access.users[token]
    clock.now += cluster_gates.REMEMBERED_SECONDS
    assert gate.caller(Credentials(token)) is None


def test_an_api_server_that_does_not_answer_lets_no_caller_in(
    cluster: MemoryCluster, gate: KubernetesGate
) -> None:
    def broken(verb: str, plural: str, name: str) -> None:
        raise ClusterError("it does not answer")

    cluster.trouble = broken
    with pytest.raises(ClusterError):
        gate.caller(Credentials(cluster_sites.token("admin")))
    with pytest.raises(ClusterError):
        gate.allows(Caller("admin"), ApiOperation.GET, NAMESPACE)
    cluster.trouble = lambda verb, plural, name: None
    assert gate.caller(Credentials(cluster_sites.token("admin"))) is not None


def test_memories_are_bounded(monkeypatch: pytest.MonkeyPatch, clock) -> None:
    monkeypatch.setattr(memories, "MOST_REMEMBERED", 3)
    memory: Memory[int, int] = Memory(clock, seconds=10.0)
    asked = []
    for number in (1, 2, 3, 4, 4, 1):
        memory.get(number, lambda: asked.append(number) or number)  # noqa: B023
    assert asked == [1, 2, 3, 4, 1]


def test_no_token_is_kept_in_clear(gate: KubernetesGate, caplog: pytest.LogCaptureFixture) -> None:
    token = cluster_sites.token("admin")
    with caplog.at_level(logging.DEBUG):
        assert gate.caller(Credentials(token)) is not None
    held = [each for each in gc.get_objects() if isinstance(each, Memory)]
    assert held
    assert token not in str([vars(each) for each in held])
    assert token not in caplog.text


def proxied(cluster: MemoryCluster, loop: Loop, clock) -> ProxyGate:
    return ProxyGate(
        cluster, loop, clock, proxies=OURS, user="X-Forwarded-User", groups="X-Forwarded-Groups",
        secret=SECRET,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("peer", "headers", "caller"),
    [
        ("10.0.0.1", {"x-forwarded-user": "ann"}, Caller("ann", ("system:authenticated",))),
        (
            "10.0.0.1",
            {"x-forwarded-user": "ann", "x-forwarded-groups": "ads, ml,,system:masters"},
            Caller("ann", ("ads", "ml", "system:authenticated")),
        ),
        ("203.0.113.9", {"x-forwarded-user": "ann"}, None),
        ("testclient", {"x-forwarded-user": "ann"}, None),
        ("10.0.0.1", {}, None),
        ("10.0.0.1", {"x-forwarded-user": " "}, None),
        ("10.0.0.1", {"x-forwarded-user": "system:kube-controller-manager"}, None),
        ("10.0.0.1", {"x-forwarded-user": "ann\x1b[31m"}, None),
        ("10.0.0.1", {"x-forwarded-groups": "ads"}, None),
        # A client that adds a header of the same name becomes an unknown user.
        ("10.0.0.1", {"x-forwarded-user": "mallory,ann"}, Caller("mallory,ann", ("system:authenticated",))),
    ],
)
def test_only_a_proxy_says_who_asks(
    cluster: MemoryCluster, loop: Loop, clock, peer: str, headers: dict[str, str], caller: Caller | None
) -> None:
    said = {SECRET_HEADER: SECRET} | headers
    found = proxied(cluster, loop, clock).caller(Credentials(cluster_sites.token("admin"), said, peer))
    assert found == caller


@pytest.mark.parametrize("secret", [None, "", "wrong", f"{SECRET}x", f"{SECRET},{SECRET}", "\u00fc"])
def test_an_address_of_a_proxy_alone_is_not_believed(
    cluster: MemoryCluster, loop: Loop, clock, secret: str | None
) -> None:
    """A pod may get an address that was the proxy's."""
    headers = {"x-forwarded-user": "ann"} | ({} if secret is None else {SECRET_HEADER: secret})
    assert proxied(cluster, loop, clock).caller(Credentials(None, headers, "10.0.0.1")) is None


@pytest.fixture
def behind(cluster: MemoryCluster, clock, tmp_path: Path) -> Iterator[TestClient]:
    """A server behind a proxy that has authenticated an editor."""
    gate = lambda of, loop: proxied(of, loop, clock)  # noqa: E731
    with cluster_sites.opened(cluster, tmp_path, gate) as site:
        made = application(site, proxies=OURS, clock=clock)
        headers = {
            "X-Forwarded-User": "edit", "X-Forwarded-For": "198.51.100.1", "X-Paceline-Proxy-Secret": SECRET,
        }  # fmt: skip
        yield TestClient(made, raise_server_exceptions=False, headers=headers, client=("10.0.0.1", 4000))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 404),
        ({"Sec-Fetch-Site": "same-origin"}, 404),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Cookie": "_oauth2_proxy=x"}, 403),
        ({"Origin": "http://testserver", "Cookie": "_oauth2_proxy=x"}, 404),
    ],
)
def test_behind_a_proxy_a_page_of_another_site_changes_nothing(
    behind: TestClient, headers: dict[str, str], status: int
) -> None:
    assert behind.post("/api/v1/jobs/none/stop", headers=headers).status_code == status
    assert behind.get("/api/v1/jobs", headers=headers).status_code == 200


def test_the_audit_log_has_the_address_of_the_client_and_the_name_of_the_user(
    behind: TestClient, cluster: MemoryCluster
) -> None:
    behind.post("/api/v1/jobs/none/stop")
    behind.headers["X-Forwarded-User"] = "admin"
    (audit,) = behind.get("/api/v1/audits").json()["items"]
    assert (audit["who"], audit["origin"], audit["namespace"]) == ("edit", "198.51.100.1", NAMESPACE)


def test_headers_of_a_proxy_twice_are_no_other_user(behind: TestClient) -> None:
    answer = behind.get("/api/v1/jobs", headers=[("X-Forwarded-User", "admin"), ("X-Forwarded-User", "view")])
    assert answer.status_code == 403


def test_a_browser_enters_with_a_token(cluster: MemoryCluster, clock, tmp_path: Path) -> None:
    with cluster_sites.opened(cluster, tmp_path) as site:
        made = application(site, proxies=OURS, clock=clock)
        client = TestClient(made, client=("10.0.0.1", 4000), headers={"X-Forwarded-Proto": "https"})
        refused = client.post("/enter", data={"token": "wrong"})
        assert refused.status_code == 401
        entered = client.post("/enter", data={"token": cluster_sites.token("view")}, follow_redirects=False)
        assert entered.status_code == 303
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" in cookie, "it came encrypted as far as the proxy"
        assert cluster_sites.token("view") not in cookie


def test_a_session_ends_with_its_token(cluster: MemoryCluster, clock, tmp_path: Path) -> None:
    gate = lambda of, loop: KubernetesGate(of, loop, clock)  # noqa: E731
    opened = functools.partial(cluster_sites.opened, cluster, tmp_path, gate)
    with opened() as site, opened() as beside:
        client, other = (TestClient(application(each, clock=clock)) for each in (site, beside))
        client.post("/enter", data={"token": cluster_sites.token("view")})
        other.cookies = client.cookies
        # Another replica knows the session, too.
        assert [each.get("/api/v1/jobs").status_code for each in (client, other)] == [200, 200]
        del cluster.access.users[cluster_sites.token("view")]
        clock.now += cluster_gates.REMEMBERED_SECONDS
        assert [each.get("/api/v1/jobs").status_code for each in (client, other)] == [401, 401]


def test_wrong_tokens_of_an_address_are_asked_about_one_after_the_other(
    cluster: MemoryCluster, clock, tmp_path: Path
) -> None:
    """So a right one is found among them, and the API server is not asked about hundreds at once."""
    with cluster_sites.opened(cluster, tmp_path) as site:
        app = application(site, clock=clock)
        gate = Counting(site.gate)
        site.gate = gate
        tokens = [f"wrong-{number}" for number in range(300)]
        asyncio.run(statuses(app, tokens[: int(guards.WRONG_BURST)]))
        gate.most = 0
        tokens.insert(290, cluster_sites.token("view"))
        found = asyncio.run(statuses(app, tokens))
        assert collections.Counter(found) == {429: 300, 200: 1}
        assert found[290] == 200
        assert gate.most == 1


class Counting:
    """A gate that counts how many callers it is asked about at once."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._lock = gate, threading.Lock()
        self.now = self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)

    def caller(self, credentials: Credentials) -> Caller | None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            return self._gate.caller(credentials)
        finally:
            with self._lock:
                self.now -= 1


async def statuses(app: ASGIApp, tokens: list[str]) -> list[int]:
    """Return how an application answers requests that come at once, each with a token."""
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        asked = [client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {each}"}) for each in tokens]
        return [answer.status_code for answer in await asyncio.gather(*asked)]


def test_a_cluster_that_does_not_answer_is_said(cluster: MemoryCluster, clock, tmp_path: Path) -> None:
    def broken(verb: str, plural: str, name: str) -> None:
        raise ClusterError("TokenReview cannot be made: the API server does not answer")

    with cluster_sites.opened(cluster, tmp_path) as site:
        client = TestClient(application(site, clock=clock), raise_server_exceptions=False)
        cluster.trouble = broken
        answer = client.get("/api/v1/jobs", headers={"Authorization": "Bearer x"})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "does not answer" in answer.json()["detail"]


def test_probes_come_by_the_address_of_the_pod(cluster: MemoryCluster, clock, tmp_path: Path) -> None:
    with cluster_sites.opened(cluster, tmp_path) as site:
        client = TestClient(application(site, hosts={"paceline.example.com"}, clock=clock))
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/api/v1/jobs", 421)):
            assert client.get(path, headers={"Host": "10.244.0.7:8470"}).status_code == status
