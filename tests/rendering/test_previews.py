"""A dry run shows what the agent will do: both are held against each other."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from paceline.agent.paceline_agent import environments
from paceline.agent.paceline_agent.configs import parse_config
from paceline.model.jobs.job_specs import PLACEHOLDERS, Framework
from paceline.rendering import previews

pieces = st.one_of(
    st.sampled_from([f"{{{name}}}" for name in PLACEHOLDERS]),
    st.sampled_from(["${role}", "{{role}}", "{print}", '{"a": 1}', "{", "}", "{ps_host}", "$", " "]),
    st.text(max_size=3),
)
texts = st.lists(pieces, max_size=6).map("".join)
roles = st.sampled_from(["ps", "worker", "chief", "evaluator"])


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    role = draw(roles)
    others = draw(st.sets(roles))
    return {
        "job": "job", "role": role, "index": 1, "attempt": 3, "threads": 2, "cpu_cores": None,
        "command": draw(st.lists(texts, min_size=1, max_size=3)),
        "cluster": {name: [f"{name}-0:1", f"{name}-1:2"] for name in others | {role}},
        "placeholders": {"run_dir": "/run", "checkpoint_dir": "/run/c"},
        "framework": draw(st.sampled_from(Framework)),
        "environment": {"A": draw(texts)}, "spool": "s", "exit": "e", "reports": "r",
    }  # fmt: skip


@given(configs())
def test_command_and_environment_are_those_that_the_agent_makes(config: dict[str, Any]) -> None:
    told = parse_config(json.dumps(config))
    values = environments.placeholder_values(told, 2)
    assert previews.command(config) == tuple(environments.fill(part, values) for part in config["command"])
    made = environments.command_environment(told, 2, {})
    assert previews.environment(config).items() <= made.items()


@given(texts)
def test_what_others_wrote_is_seen_as_they_wrote_it(text: str) -> None:
    values = {name: f"<{name}>" for name in PLACEHOLDERS}
    assert previews.fill(previews.literal(text), values) == text
    assert environments.fill(previews.literal(text), values) == text
