"""The pages of models."""

from __future__ import annotations

from starlette.testclient import TestClient
from support import trained_runs

from paceline.services.local import state_dirs


def test_a_list_leads_to_a_model_and_that_to_the_run_that_did_worse(
    client: TestClient, home: state_dirs.Home
) -> None:
    assert "There is no job yet." in client.get("/models").text
    model = trained_runs.fill(home)
    listed = client.get("/models").text
    assert f'href="/models/{model}"' in listed
    assert "14 days after their end" in listed
    shown = client.get(f"/models/{model}").text
    assert shown.count('<svg class="chart ') == 3
    # The first run was not measured, so it has no dot; of the others one is another one.
    assert shown.count("<circle") == 3 * 11
    assert shown.count('<circle class="dot tint-vermilion"') == 1
    assert "worse than before" in shown
    assert 'href="/jobs/nightly-10"' in shown
    chinese = client.get(f"/models/{model}?language=zh").text
    assert "与设置相同的此前作业相比" in chinese
    assert client.get("/models/missing").status_code == 404
