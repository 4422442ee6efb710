"""The API does what it says of itself: thousands of requests are made from its description."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from starlette.testclient import TestClient
from support import filled_homes
from support.examples import examples

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.gates import TokenGate
from paceline.surfaces.web.sites import LocalSite

# What is right by the description may be wrong all the same: a job file, a selector, a field's name. And what
# is wrong may be right when it is sent: a token is put where none was, an empty list is no parameter.
EXCLUDED = [positive_data_acceptance, negative_data_rejection]
#: Requests that are to be made in each mode, and of each operation at most: by night 5,000 and more together.
LEAST, CASES = examples(2500), examples(90)
_PATIENCE = 240.0
#: Jobs that are there, which half of the requests are about; one of them is deleted.
NAMES, DOOMED = ("census", "deepfm-large-plain-4"), "gone"
#: What starts processes, or computes for seconds, is asked only of jobs that are not there.
STRANGERS = {"resumeJob", "changeJob", "undoChange", "listProposals", "predictJob", "takeTrace"}

schemathesis.serializer.alias("application/vnd.apache.parquet", "application/octet-stream")


def test_every_operation_is_described(stranger: TestClient) -> None:
    schema = stranger.get("/api/v1/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    names = set()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert operation["operationId"] not in names, path
            names.add(operation["operationId"])
            assert operation["description"].endswith("."), (method, path)
            assert operation["security"], (method, path)
            assert {"401", "403", "404", "409", "422", "503"} <= set(operation["responses"]), (method, path)
            for status, answer in operation["responses"].items():
                assert status == "204" or answer["content"], (method, path, status)


@pytest.fixture
def described(api: jobs.Jobs, home: state_dirs.Home, recorded: str) -> schemathesis.BaseSchema:
    """The API of a home with some jobs, of which none runs."""
    filled_homes.fill(home, "census", loads=(0.5, 0.9), steps=3)
    filled_homes.fill(home, "gone", phase=JobPhase.FAILED, message="worker-0: exit code 1")
    # No request has to wait: the clock goes on with each look.
    ticks = iter(range(10**9))
    made = application(LocalSite(api, TokenGate("the-token", "ann")), clock=lambda: float(next(ticks)))
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", made)


@pytest.mark.slow
@pytest.mark.parametrize("mode", GenerationMode)
def test_whatever_is_asked_the_answer_is_described(
    described: schemathesis.BaseSchema, mode: GenerationMode
) -> None:
    asked = 0
    for found in described.get_all_operations():
        operation = found.ok()

        @settings(max_examples=CASES, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy(generation_mode=mode), name=names(operation))
        def ask(case: schemathesis.Case, name: str | None) -> None:
            nonlocal asked
            asked += 1
            if name is not None and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = name
            # How fast an answer comes is no matter here; a loaded machine takes seconds.
            case.call_and_validate(
                headers={"Authorization": "Bearer the-token"}, excluded_checks=EXCLUDED, timeout=_PATIENCE
            )

        ask()
    assert asked >= LEAST


def names(operation: Any) -> st.SearchStrategy[str | None]:
    """Return whom requests of an operation are about; None: whatever is made up."""
    known = operation.definition.raw["operationId"]
    if known in STRANGERS or "/jobs/" not in operation.path:
        return st.none()
    return st.none() | st.sampled_from((DOOMED,) if known == "deleteJob" else NAMES)
