"""The tokens that agents require, read from the secrets of their jobs.

A job has no token if it was rendered without an operator, or if an older operator began it. The agents of
such a job answer every caller that reaches them. So a secret that is missing, or may not be read, is an error
only once an agent refuses.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import NO_HEADERS, Cluster, ClusterError
from paceline.rendering import agent_secrets

#: Kubernetes' API server takes ``Authorization`` for itself.
HEADER = "Paceline-Token"
#: The most jobs whose tokens are remembered.
MOST_KNOWN = 10_000

T = TypeVar("T")


class AgentTokens:
    """Sends requests to agents with their job's token, which is read once, and again if an agent refuses.

    Args:
        cluster: where the jobs are.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[str, str], Mapping[str, str]] = {}
        self._reading = asyncio.Lock()

    async def asked(self, namespace: str, job: str, ask: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Return an agent's answer.

        Args:
            namespace: the namespace of its job.
            job: the job.
            ask: sends the request with the given headers.

        Raises:
            ClusterError: the secret cannot be read, or `ask` raises it.
        """
        headers = await self._headers(namespace, job)
        try:
            return await ask(headers)
        except ClusterError as error:
            if error.code != HTTPStatus.UNAUTHORIZED:
                raise
            # The job may be a new one of the same name, or may have got a token meanwhile.
            if self._known.get((namespace, job)) is headers:
                del self._known[namespace, job]
            newer = await self._headers(namespace, job)
            if newer == headers:
                hint = (
                    f"agents take the token of their job: "
                    f"that needs the right to get the secret {agent_secrets.name(job)}"
                )
                raise ClusterError(error.message, code=error.code, reason=error.reason, hint=hint) from error
            return await ask(newer)

    async def _headers(self, namespace: str, job: str) -> Mapping[str, str]:
        async with self._reading:
            if (namespace, job) not in self._known:
                found = await self._read(namespace, job)
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[namespace, job] = found
            return self._known[namespace, job]

    async def _read(self, namespace: str, job: str) -> Mapping[str, str]:
        try:
            found = await self._cluster.get(kinds.SECRETS, agent_secrets.name(job), namespace)
        except ClusterError as error:
            if error.is_missing or error.is_forbidden:
                return NO_HEADERS
            raise
        try:
            data = (found.get("data") or {})[agent_secrets.TOKEN]
            token = base64.b64decode(data, validate=True).decode("ascii").strip()
        except (KeyError, ValueError, TypeError, binascii.Error):
            return NO_HEADERS
        return {HEADER: token} if token.isprintable() else NO_HEADERS
