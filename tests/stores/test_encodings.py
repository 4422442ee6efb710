"""Whatever a state holds comes back as it was; what cannot be read is said so."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES, examples

from paceline import errors
from paceline.control import states
from paceline.model import roles
from paceline.model.jobs import job_specs, placements, runs, statuses
from paceline.stores import encodings

words = st.text(max_size=12)
pairs = st.dictionaries(words, words, max_size=3)
numbers = st.integers(-(2**62), 2**62)
floats = st.floats(allow_nan=False)
json_data = st.recursive(
    st.none() | st.booleans() | numbers | floats | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
replica_ids = st.builds(roles.ReplicaId, st.sampled_from(roles.Role), st.integers(0, 500))
exits = st.builds(
    statuses.ExitReason,
    kind=st.sampled_from(statuses.ExitKind), code=st.none() | numbers, signal=st.none() | numbers,
    message=words,
)  # fmt: skip
role_specs = st.builds(
    job_specs.RoleSpec,
    role=st.sampled_from(roles.Role), replicas=st.integers(0, 500), cpu_cores=st.none() | floats,
    memory_bytes=st.none() | numbers, cpu_policy=st.sampled_from(job_specs.CpuPolicy),
    command=st.lists(words, max_size=3).map(tuple), environment=pairs,
    restart=st.builds(
        job_specs.RestartPolicy, when=st.sampled_from(job_specs.RestartWhen), backoff_seconds=floats
    ),
    memory_growth=st.none() | st.builds(job_specs.MemoryGrowth, factor=floats, cap_bytes=st.none() | numbers),
)  # fmt: skip
specs = st.builds(
    job_specs.JobSpec,
    name=words, labels=pairs, image=st.none() | words, command=st.lists(words, max_size=3).map(tuple),
    environment=pairs, roles=st.lists(role_specs, max_size=3).map(tuple),
    placement=st.builds(
        placements.PodPlacement,
        strategy=st.sampled_from(placements.PlacementStrategy), node_selector=pairs,
        tolerations=st.lists(st.builds(placements.Toleration, key=st.none() | words), max_size=2).map(tuple),
    ),
    hosts=st.lists(
        st.builds(job_specs.Host, name=words, cpu_cores=st.none() | floats), max_size=2
    ).map(tuple),
    success=st.sampled_from(job_specs.SuccessPolicy), clean_up=st.sampled_from(job_specs.CleanUp),
    volumes=st.lists(st.builds(job_specs.Volume, name=words, mount_path=words), max_size=2).map(tuple),
    training=st.none() | st.dictionaries(words, json_data, max_size=3),
)  # fmt: skip
replica_states = st.builds(
    states.ReplicaState,
    replica=replica_ids, phase=st.sampled_from(statuses.ReplicaPhase), attempt=st.integers(0, 2**31 - 1),
    restarts=st.integers(0, 2**31 - 1), memory_bytes=st.none() | numbers, exit=st.none() | exits,
)  # fmt: skip
job_states = st.builds(
    states.JobState,
    spec=specs, phase=st.sampled_from(statuses.JobPhase),
    replicas=st.lists(replica_states, max_size=4, unique_by=lambda state: state.replica).map(tuple),
    outcome=st.none() | st.sampled_from(statuses.JobPhase), message=words,
)  # fmt: skip

one_store = settings(max_examples=examples(40), suppress_health_check=SHARED_FIXTURES)


@given(state=job_states)
def test_any_state_comes_back(state):
    assert encodings.decode(states.JobState, encodings.encode(state), what="it") == state


@one_store
@given(state=job_states)
def test_any_state_comes_back_from_a_store(filled, state):
    filled.save_state("demo", state, at=1.0)
    assert filled.load_state("demo") == state
    shown = {row.replica: (row.phase, row.attempt, row.restarts, row.memory_bytes, row.exit)
             for row in filled.replicas("demo")}  # fmt: skip
    for one in state.replicas:
        assert shown[one.replica] == (one.phase, one.attempt, one.restarts, one.memory_bytes, one.exit)


@one_store
@given(spec=specs, source=words, notes=st.lists(words, max_size=2).map(tuple), at=floats)
def test_any_run_comes_back_from_a_store(filled, spec, source, notes, at):
    filled.delete_run(filled.list_runs()[0].name)
    run = runs.Run(
        name="fixed", spec=spec, source=source, engine="local", directory="/x", submitted_at=at, notes=notes
    )
    filled.create_run(run, states.initial(dataclasses.replace(spec, roles=())))
    assert filled.get_run("fixed") == run
    assert filled.list_runs()[0].labels == spec.labels


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "unknown field colour"),
        ({"phase": "levitating"}, "phase is 'levitating', not pending or starting"),
        ({"phase": None}, "phase is None"),
        ({"message": 3}, "message is 3, not of type str"),
        ({"replicas": [{"replica": "cat-0"}]}, "replicas[0].replica is 'cat-0', not a replica"),
        ({"replicas": [{"replica": 7}]}, "replicas[0].replica is 7, not a replica"),
        ({"replicas": {}}, "replicas is {}, not a list"),
        ({"spec": {"labels": {}}}, "field spec.name is missing"),
        ({"spec": {"name": "x", "labels": []}}, "spec.labels is [], not a mapping"),
        ({"spec": {"name": "x", "termination_grace_seconds": True}}, "is True, not of type float"),
        ({"spec": 3}, "spec is 3, not a JobSpec"),
    ],
)
def test_a_state_of_another_program_is_refused(change, said):
    state = json.loads(encodings.encode(states.JobState(spec=job_specs.JobSpec(name="x"))))
    with pytest.raises(errors.StoreError) as caught:
        encodings.decode(states.JobState, json.dumps(state | change), what="the state of job 'x'")
    assert said in caught.value.message
    assert "the state of job 'x'" in caught.value.message
    assert "newer" in (caught.value.hint or "")


def test_a_state_of_an_older_program_gets_defaults():
    state = encodings.decode(states.JobState, '{"spec": {"name": "x"}}', what="it")
    assert state == states.JobState(spec=job_specs.JobSpec(name="x"))


def test_a_damaged_state_is_said_so():
    with pytest.raises(errors.StoreError, match="damaged"):
        encodings.decode(states.JobState, '{"spec": ', what="it")


@pytest.mark.parametrize("value", [{"a": object()}, {3: "a"}, b"bytes"])
def test_what_is_no_value_of_the_model_cannot_be_stored(value):
    with pytest.raises(TypeError, match="stored"):
        encodings.encode(job_specs.JobSpec(name="x", training={"inner": value}))
