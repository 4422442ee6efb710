"""In whose name the client of real clusters asks, seen by a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import aiohttp.test_utils
import aiohttp.web
import pytest
import yaml

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import ClusterError


def seen(
    path: Path, monkeypatch: pytest.MonkeyPatch, user: str | None, groups: Sequence[str]
) -> list[list[tuple[str, str]]]:
    """Return the headers of impersonation of each request: a listing, a page, a listing."""
    requests: list[list[tuple[str, str]]] = []

    async def answer(request: aiohttp.web.BaseRequest) -> aiohttp.web.Response:
        assert request.headers["Authorization"] == "Bearer secret"
        requests.append([each for each in request.headers.items() if each[0].startswith("Impersonate-")])
        return aiohttp.web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def ask() -> None:
        async with aiohttp.test_utils.RawTestServer(answer) as server:
            configuration = {
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": {"server": str(server.make_url(""))}}],
                "users": [{"name": "it", "user": {"token": "secret"}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            }
            (path / "kubeconfig").write_text(yaml.safe_dump(configuration))
            monkeypatch.setenv("KUBECONFIG", str(path / "kubeconfig"))
            cluster = RealCluster(user=user, groups=groups)
            await cluster.list(kinds.PODS)
            await cluster.read("/version", limit_bytes=10_000)
            await cluster.list(kinds.PODS)
            await cluster.close()

    asyncio.run(ask())
    return requests


def test_requests_are_made_in_the_name_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [("Impersonate-User", "ann"), ("Impersonate-Group", "ads"), ("Impersonate-Group", "ops")]
    assert seen(tmp_path, monkeypatch, "ann", ("ads", "ops")) == [expected] * 3
    assert seen(tmp_path, monkeypatch, None, ()) == [[]] * 3


def test_a_name_that_would_be_another_header_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterError, match="cannot be listed"):
        seen(tmp_path, monkeypatch, "ann\r\nImpersonate-Group: system:masters", ())
