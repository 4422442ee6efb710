"""Who may do what on a cluster: every route, asked by each kind of caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import cluster_sites, site_routes
from support.cluster_sites import MAY, NAMESPACE, OTHER
from support.memory_clusters import MemoryCluster
from support.site_routes import Asked

from paceline.surfaces.web.applications import application
from paceline.surfaces.web.operations import ApiOperation


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    cluster_sites.fill(made.access)
    return made


@pytest.fixture
def client(cluster: MemoryCluster, clock, tmp_path: Path) -> Iterator[TestClient]:
    with cluster_sites.opened(cluster, tmp_path) as site:
        yield TestClient(application(site, clock=clock), raise_server_exceptions=False)


def routes(client: TestClient) -> list[Asked]:
    return site_routes.asked(client.app)  # type: ignore[arg-type]


def ask(client: TestClient, each: Asked, namespace: str, token: str | None) -> int:
    client.headers.pop("Authorization", None)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = {"source": "x", "workers": 1} if each.method in ("POST", "PUT", "PATCH") else None
    url = f"{each.path}?namespace={namespace}"
    return client.request(each.method, url, headers=headers, json=body, follow_redirects=False).status_code


def test_the_api_is_among_the_routes(client: TestClient) -> None:
    described = client.get("/api/v1/openapi.json").json()["paths"]
    found = routes(client)
    assert {re.sub(r"\{\w+\}", "missing", path) for path in described} <= {each.path for each in found}
    assert {each.operation for each in found} >= set(ApiOperation) - {ApiOperation.TRACE}


@pytest.mark.parametrize("token", [None, "", "wrong", "token-of-admin-", "x" * 20_000])
def test_no_caller_is_let_in_without_a_known_token(client: TestClient, clock, token: str | None) -> None:
    for each in routes(client):
        clock.now += 1000.0
        assert ask(client, each, NAMESPACE, token) == 401, each


@pytest.mark.parametrize("role", MAY)
def test_a_role_may_what_the_table_says(client: TestClient, clock, role: str) -> None:
    for each in routes(client):
        clock.now += 1000.0
        status = ask(client, each, NAMESPACE, cluster_sites.token(role))
        if each.operation in MAY[role]:
            assert status < 500, each
            assert status not in (401, 403), each
        else:
            assert status == 403, each


@pytest.mark.parametrize("role", MAY)
def test_a_role_in_one_namespace_is_none_in_another(client: TestClient, clock, role: str) -> None:
    for each in routes(client):
        clock.now += 1000.0
        status = ask(client, each, OTHER, cluster_sites.token(role))
        assert (status == 403) == (each.operation is not ApiOperation.ASK), each


def test_an_administrator_of_the_cluster_may_everything(client: TestClient, clock) -> None:
    for each in routes(client):
        clock.now += 1000.0
        assert ask(client, each, OTHER, cluster_sites.token("cluster-admin")) not in (401, 403), each
