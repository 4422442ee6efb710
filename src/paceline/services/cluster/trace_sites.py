"""The pods of a run as a trace site: their agents pass on requests for traces, and serve the files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from paceline.engines.kubernetes import requests
from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.engines.kubernetes.loops import Loop
from paceline.model.traces import traced_steps
from paceline.services.cluster.agent_tokens import AgentTokens
from paceline.services.trace_sites import replacing
from paceline.sources import agents

#: How long to wait before an agent that did not answer is asked again.
RETRY_SECONDS = 0.5
#: The most files of a trace per replica: a few attempts, each in a few formats.
MOST_FILES = 8
_FILE = re.compile(r"[a-z]{1,20}-[0-9]{1,6}\.[0-9]{1,6}\.[a-z]{1,20}")

T = TypeVar("T")


class PodTraceSite:
    """The pods of a run, whose agents pass on requests for traces and serve the files.

    Args:
        cluster: where the pods are.
        runner: the event loop of the cluster's client.
        addresses: the paths of the agents below the API server.
        run: the folder to which files are brought.
        namespace: the namespace of the job.
        job: the job, whose token the agents require.
    """

    def __init__(
        self,
        cluster: Cluster,
        runner: Loop,
        addresses: Sequence[str],
        run: Path,
        *,
        namespace: str,
        job: str,
    ) -> None:
        self.run = run
        self._of_job = namespace, job
        self._tokens = AgentTokens(cluster)
        self._cluster = cluster
        self._runner = runner
        self._addresses = addresses

    @contextlib.contextmanager
    def asked(self, name: str) -> Iterator[None]:
        """Ask every agent for a trace (see `TraceSite`); agents withdraw the request by themselves."""
        self._ask(f"/{traced_steps.FOLDER}/{name}")
        yield

    def profile(self, name: str, window: traced_steps.Window) -> None:
        """Ask every agent for a profile (see `TraceSite`)."""
        query = f"profile={window.milliseconds}&at={window.at:.3f}"
        self._ask(f"/{traced_steps.FOLDER}/{name}?{query}")

    def _ask(self, path: str) -> None:
        done = self._runner.run(requests.answers([self._post(at + path) for at in self._addresses]))
        errors = [each for each in done if isinstance(each, ClusterError)]
        if errors and len(errors) == len(done):
            raise ClusterError(
                errors[0].message, code=errors[0].code,
                hint=errors[0].hint
                or "traces are asked for through the API server: that needs the right to create pods/proxy",
            )  # fmt: skip

    async def _post(self, path: str) -> bytes:
        async def post(headers: Mapping[str, str]) -> bytes:
            return await self._cluster.post(path, headers=headers)

        return await self._tokens.asked(*self._of_job, post)

    def fetch(self, name: str | None = None) -> None:
        """Bring the trace files of the agents (see `TraceSite`)."""
        self._runner.run(self._fetch(name))

    async def _fetch(self, name: str | None) -> None:
        if name is None:
            found = await requests.answers([self._names(at, "") for at in self._addresses])
            known = {each for names in found if not isinstance(names, ClusterError) for each in names}
            name = max(filter(traced_steps.is_name, known), default=None)
            await self._fetch_variables()
        if name is not None:
            listed = await requests.answers([self._names(at, f"/{name}") for at in self._addresses])
            # If pods share the folder of their run, each agent has the files of all of them.
            sources = {
                Path(file).name: at
                for at, files in zip(self._addresses, listed, strict=True)
                if not isinstance(files, ClusterError)
                for file in files[: MOST_FILES * len(self._addresses)]
                if _FILE.fullmatch(file)
            }
            await requests.answers([self._fetch_file(at, name, file) for file, at in sources.items()])

    async def _fetch_file(self, at: str, name: str, file: str) -> None:
        path = self.run / traced_steps.FOLDER / name / file
        if path.suffix in traced_steps.SUFFIXES and not path.exists():
            await self._bring(f"{at}/{traced_steps.FOLDER}/{name}/{file}", path)

    async def _bring(self, source: str, path: Path) -> None:
        """Write an agent's file piece by piece, since many files are brought at once."""

        async def bring(headers: Mapping[str, str]) -> None:
            with replacing(path) as part, part.open("wb") as file:
                answer = self._cluster.stream(source, limit_bytes=agents.MAX_FILE_BYTES, headers=headers)
                async with contextlib.aclosing(answer) as pieces:
                    async for piece in pieces:
                        file.write(piece)

        await self._again(bring)

    async def _fetch_variables(self) -> None:
        """Bring the file of variables, which the chief writes; other agents may not have it."""
        path = self.run / traced_steps.VARIABLES
        await requests.answers(
            [self._bring(f"{at}/{traced_steps.VARIABLES}", path) for at in self._addresses]
        )

    async def _names(self, at: str, below: str) -> list[str]:
        path = f"{at}/{traced_steps.FOLDER}{below}"

        async def read(headers: Mapping[str, str]) -> bytes:
            return await self._cluster.read(path, limit_bytes=agents.MAX_PAGE_BYTES, headers=headers)

        answer = await self._again(read)
        try:
            return [str(name) for name in json.loads(answer)]
        except (ValueError, TypeError) as error:
            raise ClusterError(f"{at} answers otherwise than an agent: {answer[:80]!r}") from error

    async def _again(self, ask: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Ask an agent, and once more if it did not answer.

        An agent that gets no CPU drops the connection, and an overloaded API server answers 429.
        """
        try:
            return await self._tokens.asked(*self._of_job, ask)
        except ClusterError as error:
            if error.code is not None and error.code < 500 and error.code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
        await asyncio.sleep(RETRY_SECONDS)
        return await self._tokens.asked(*self._of_job, ask)
