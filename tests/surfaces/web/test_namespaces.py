"""Pages of other namespaces than the server's own: what their addresses are, and where their links lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient
from support import cluster_sites, site_routes
from support.cluster_sites import NAMESPACE, OTHER
from support.memory_clusters import MemoryCluster

from paceline.surfaces.web import namespaces
from paceline.surfaces.web.applications import application

HTML = {"Accept": "text/html"}
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: x}
spec:
  image: i:1
  command: [train]
  roles: {ps: {}, worker: {}}
"""


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    cluster_sites.fill(made.access)
    return made


@pytest.fixture
def client(cluster: MemoryCluster, clock, tmp_path: Path) -> Iterator[TestClient]:
    with cluster_sites.opened(cluster, tmp_path) as site:
        headers = {"Authorization": f"Bearer {cluster_sites.token('cluster-admin')}"}
        yield TestClient(
            application(site, clock=clock), raise_server_exceptions=False, headers=headers,
            follow_redirects=False,
        )  # fmt: skip


def test_every_link_of_a_page_stays_in_its_namespace(client: TestClient, clock) -> None:
    pages = {each.path for each in site_routes.asked(client.app) if not each.path.startswith("/api/")}
    assert len(pages) > 5
    for path in pages:
        clock.now += 1000.0
        answer = client.get(f"/n/{OTHER}{path}", headers=HTML)
        for link in re.findall(r'="(/[^"]*)"', answer.text):
            assert link.startswith((f"/n/{OTHER}/", "/static/", "/n/")), (path, link)


@pytest.mark.parametrize(
    ("html", "made"),
    [
        ('<a href="/jobs/x">', '<a href="/n/ads/jobs/x">'),
        ('<form method="post" action="/submit">', '<form method="post" action="/n/ads/submit">'),
        (
            '<b hx-get="/jobs/x" data-url="/api/v1/jobs">',
            '<b hx-get="/n/ads/jobs/x" data-url="/n/ads/api/v1/jobs">',
        ),
        ('<a href="/n/search/">', '<a href="/n/search/">'),
        ('<link href="/static/a.css">', '<link href="/static/a.css">'),
        ('<a href="//evil.example">', '<a href="//evil.example">'),
        ('<a href="https://example.com/">', '<a href="https://example.com/">'),
        ("<p>href=&#34;/jobs&#34;</p>", "<p>href=&#34;/jobs&#34;</p>"),
    ],
)
def test_links(html: str, made: str) -> None:
    assert namespaces.linked(html, "/n/ads") == made
    assert namespaces.linked(html, "") == html


def test_the_namespace_of_the_address_is_meant(client: TestClient) -> None:
    client.headers["Authorization"] = f"Bearer {cluster_sites.token('view')}"
    assert client.get(f"/n/{NAMESPACE}/api/v1/jobs").status_code == 200
    answer = client.get(f"/n/{OTHER}/api/v1/jobs")
    assert answer.status_code == 403
    assert f"may not do this in {OTHER}" in answer.json()["detail"]
    for path in ("/n/Ads/api/v1/jobs", "/n/a.b/api/v1/jobs", "/n//api/v1/jobs", f"/n/{NAMESPACE}"):
        assert client.get(path).status_code == 404, path


def test_where_an_answer_leads_to_stays_in_the_namespace(client: TestClient) -> None:
    left = client.post(f"/n/{OTHER}/leave")
    assert left.headers["location"] == f"/n/{OTHER}/enter"
    made = client.post(f"/n/{OTHER}/submit", data={"source": JOB}, headers=HTML)
    assert (made.status_code, made.headers["location"]) == (303, f"/n/{OTHER}/jobs/x"), made.text
    gone = client.post(f"/n/{OTHER}/jobs/x/delete", headers=HTML)
    assert gone.status_code in (204, 409)


def test_namespaces_are_chosen_among_those_that_one_may_see(
    client: TestClient, cluster: MemoryCluster
) -> None:
    for namespace in (NAMESPACE, OTHER):
        assert client.post(f"/api/v1/jobs?namespace={namespace}", json={"source": JOB}).status_code == 201
    shown = client.get("/namespaces", headers=HTML).text
    assert f'href="/n/{OTHER}/"' in shown
    client.headers["Authorization"] = f"Bearer {cluster_sites.token('view')}"
    shown = client.get("/namespaces", headers=HTML).text
    assert f'href="/n/{NAMESPACE}/"' in shown
    assert f"/n/{OTHER}/" not in shown
    # A user who knows the name of another one goes there; what they may see there is another question.
    assert client.get(f"/namespaces?name={OTHER}").headers["location"] == f"/n/{OTHER}/"
    wrong = client.get("/namespaces?name=%3Cscript%3E//evil.example", headers=HTML)
    assert "This is no name of a namespace." in wrong.text
    assert "<script>//" not in wrong.text


def test_a_token_of_a_cluster_never_stands_in_a_link(client: TestClient, clock) -> None:
    answer = client.get(f"/enter?token={cluster_sites.token('admin')}", headers=HTML)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert client.get("/enter", headers=HTML).status_code == 200


def test_who_may_not_look_here_is_shown_where_else(client: TestClient) -> None:
    client.headers["Authorization"] = f"Bearer {cluster_sites.token('view')}"
    answer = client.get(f"/n/{OTHER}/", headers=HTML)
    assert answer.status_code == 403
    assert f'href="/n/{OTHER}/namespaces"' in answer.text
    assert client.get(f"/n/{OTHER}/namespaces", headers=HTML).status_code == 200


def test_the_address_of_a_job_in_another_namespace_leads_to_it(client: TestClient) -> None:
    body = {"source": JOB}
    for asked, location in (
        (f"/api/v1/jobs?namespace={OTHER}", f"/api/v1/jobs/x?namespace={OTHER}"),
        ("/api/v1/jobs", "/api/v1/jobs/x"),
        (f"/n/{OTHER}/api/v1/jobs", f"/n/{OTHER}/api/v1/jobs/x-2"),
    ):
        made = client.post(asked, json=body)
        assert (made.status_code, made.headers["location"]) == (201, location), made.text
        assert client.get(location).json()["name"] == made.json()["name"]


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "///evil.example", "/%09/evil.example", "/%5Cevil.example"]
)
def test_no_link_of_a_page_leads_to_the_host_that_its_path_names(client: TestClient, path: str) -> None:
    for prefix in ("", f"/n/{OTHER}"):
        text = client.get(f"http://testserver{prefix}{path}", headers=HTML).text
        links = re.findall(r'href="([^"]*(?:theme|language)=[^"]*)"', text)
        assert len(links) >= 4
        for link in links:
            assert urljoin("http://testserver/", link).startswith("http://testserver/"), link
            assert not link.startswith(("//", "/\\")), link
