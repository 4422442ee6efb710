"""Whatever a server answers, it is a value or an error that says so."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import filled_homes
from support.examples import examples

from paceline.errors import PacelineError, SourceError
from paceline.model.jobs.run_queries import RunQuery
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.services.logs import LogSelection
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_jobs import ServerJobs

ASKED = {
    "/jobs": lambda served: (served.page(RunQuery()), served.runs()),
    "/jobs/census": lambda served: (served.replicas("census"), served.supervisor_pids(served.get("census"))),
    "/jobs/census/source": lambda served: None,
    "/jobs/census/events": lambda served: served.events("census"),
    "/jobs/census/situation": lambda served: served.situation("census"),
    "/jobs/census/snapshot": lambda served: served.snapshot("census"),
    "/jobs/census/logs": lambda served: list(served.logs(served.get("census"), LogSelection(tail=1))),
    "/jobs/census/traces": lambda served: served.trace_site(served.get("census")).fetch(),
}
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def answers(home: state_dirs.Home, api: jobs.Jobs, connection: ServerConnection) -> dict[str, Any]:
    """What a server says of a job, by path."""
    run = filled_homes.fill(home, "census", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    logs = Path(run.directory) / "logs"
    logs.mkdir(parents=True)
    (logs / "ps-0.1.log").write_text("hello\n")
    found = {path: connection.get(path) for path in ASKED if not path.endswith("source")}
    return {**found, "/jobs/census/source": connection.text("/jobs/census/source")}


def served(answers: dict[str, Any], folder: Path) -> ServerJobs:
    """Return the jobs of a server that gives these answers."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        found = answers[request.url.path.removeprefix("/api/v1")]
        if isinstance(found, str):
            return httpx2.Response(200, text=found)
        return httpx2.Response(200, content=json.dumps(found))

    client = httpx2.Client(base_url="http://server", transport=httpx2.MockTransport(answer))
    return ServerJobs(ServerConnection(client, pauses_seconds=()), folder, shares_files=False)


def test_what_a_newer_server_adds_is_left_out(answers: dict[str, Any], tmp_path: Path) -> None:
    known = [ask(served(answers, tmp_path)) for ask in ASKED.values()]
    newer = {path: _added(found) for path, found in answers.items()}
    newer["/jobs/census"]["spec"] = answers["/jobs/census"]["spec"]
    newer["/jobs/census/situation"] = {**answers["/jobs/census/situation"], "more": 1}
    assert [ask(served(newer, tmp_path)) for ask in ASKED.values()] == known


def _added(found: Any) -> Any:
    if isinstance(found, dict):
        inner = {key: value if key == "labels" else _added(value) for key, value in found.items()}
        return {**inner, "more": {"a": [1]}}
    return list(map(_added, found)) if isinstance(found, list) else found


def test_what_is_missing_is_named(answers: dict[str, Any], tmp_path: Path) -> None:
    del answers["/jobs/census"]["last_phase"]
    with pytest.raises(SourceError, match="says of census cannot be read: 'last_phase' is missing") as caught:
        served(answers, tmp_path).get("census")
    assert "same version" in str(caught.value.hint)


@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32), other=junk)
def test_whatever_is_answered(answers: dict[str, Any], tmp_path: Path, seed: int, other: Any) -> None:
    chance = random.Random(seed)
    path = chance.choice([path for path in ASKED if not path.endswith("source")])
    wrong = copy.deepcopy(answers)
    wrong[path] = _replaced(wrong[path], other, chance)
    with contextlib.suppress(PacelineError):
        ASKED[path](served(wrong, tmp_path))


def _replaced(found: Any, other: Any, chance: random.Random) -> Any:
    """Return a document in which something is something else."""
    if not found or not isinstance(found, dict | list) or chance.random() < 0.1:
        return other
    key = chance.choice(list(found) if isinstance(found, dict) else range(len(found)))
    found[key] = _replaced(found[key], other, chance)
    return found


@pytest.mark.parametrize("name", ["../../etc", "2026-11-24T08-00-00.000Z/..", "request"])
def test_files_of_traces_stay_in_their_folder(answers: dict[str, Any], tmp_path: Path, name: str) -> None:
    for trace, file in ((name, "worker-0.1.parquet"), ("2026-11-24T08-00-00.000Z", f"{name}.parquet")):
        answers["/jobs/census/traces"]["items"] = [{"name": trace, "files": [{"name": file, "bytes": 1}]}]
        with pytest.raises(SourceError, match="which is none"):
            ASKED["/jobs/census/traces"](served(answers, tmp_path))
    assert list(tmp_path.rglob("*.parquet")) == []
