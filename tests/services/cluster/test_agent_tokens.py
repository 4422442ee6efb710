"""Agents are asked with the tokens of their jobs, and those that have none without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.rendering import agent_secrets
from paceline.rendering.surroundings import Surroundings
from paceline.services.cluster.agent_tokens import HEADER, AgentTokens


class Agent:
    """Stands for the agents of a job, behind the API server."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.asked: list[str | None] = []

    async def __call__(self, headers: Mapping[str, str]) -> str:
        self.asked.append(headers.get(HEADER))
        if self.token is not None and headers.get(HEADER) != self.token:
            raise ClusterError("the token of the job is needed", code=401)
        return "a page"


def cluster_with(token: str | None) -> MemoryCluster:
    cluster = MemoryCluster()
    if token is not None:
        asyncio.run(cluster.create(kinds.SECRETS, agent_secrets.secret(job(), Surroundings(), token)))
    return cluster


def reads(cluster: MemoryCluster) -> int:
    return sum(verb == "get" for verb, _ in cluster.calls)


@pytest.mark.parametrize(("secret", "taken"), [("one", "one"), ("one", None), (None, None)])
def test_agents_with_and_without_a_token_are_read(secret: str | None, taken: str | None) -> None:
    """Without: those of a job that an older operator began, or that was rendered."""
    cluster, agent = cluster_with(secret), Agent(taken)
    tokens = AgentTokens(cluster)
    for _ in range(3):
        assert asyncio.run(tokens.asked("default", "clicks", agent)) == "a page"
    assert agent.asked == [secret] * 3
    assert reads(cluster) == 1


def test_a_job_that_got_a_token_since_is_asked_with_it() -> None:
    cluster, agent = cluster_with(None), Agent(None)
    tokens = AgentTokens(cluster)
    assert asyncio.run(tokens.asked("default", "clicks", agent)) == "a page"
    asyncio.run(cluster.create(kinds.SECRETS, agent_secrets.secret(job(), Surroundings(), "new")))
    agent.token = "new"
    assert asyncio.run(tokens.asked("default", "clicks", agent)) == "a page"
    assert agent.asked == [None, None, "new"]


def test_who_may_not_read_secrets_hears_which_right_lacks() -> None:
    def trouble(verb: str, plural: str, name: str) -> None:
        if plural == "secrets":
            raise ClusterError("secrets is forbidden", code=403, reason="Forbidden")

    cluster = cluster_with("one")
    cluster.trouble = trouble
    assert asyncio.run(AgentTokens(cluster).asked("default", "clicks", Agent(None))) == "a page"
    with pytest.raises(ClusterError, match="the token of the job is needed") as refused:
        asyncio.run(AgentTokens(cluster).asked("default", "clicks", Agent("one")))
    assert refused.value.hint is not None
    assert "right to get the secret clicks-agent" in refused.value.hint


@pytest.mark.parametrize("data", [None, {}, {"token": "%"}, {"token": "AAA="}, {"token": 5}])
def test_a_secret_that_makes_no_sense_is_none(data: Any) -> None:
    cluster, agent = cluster_with("one"), Agent(None)
    cluster.objects["secrets", "default", "clicks-agent"]["data"] = data
    assert asyncio.run(AgentTokens(cluster).asked("default", "clicks", agent)) == "a page"
    assert agent.asked == [None]
