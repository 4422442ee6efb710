"""What the command sees: placeholders, TF_CONFIG, environment, threads."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.agent.paceline_agent import configs, environments

FIELDS = {
    "job": "clicks",
    "role": "worker",
    "index": 1,
    "attempt": 2,
    "command": ["true"],
    "cluster": {"ps": ["p:1"], "worker": ["w:1", "w:2"], "chief": [], "evaluator": ["e:1"]},
    "spool": "spool",
    "exit": "exit",
    "reports": "reports",
    "placeholders": {"run_dir": "/runs/7", "checkpoint_dir": "/c"},
}


def config(**fields):
    return configs.parse_config(json.dumps({**FIELDS, **fields}))


VALUES = environments.placeholder_values(config(), 4)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{job}/{role}-{index}.{attempt}", "clicks/worker-1.2"),
        ("--ps={ps_hosts} --workers={worker_hosts}", "--ps=p:1 --workers=w:1,w:2"),
        ("--cluster={cluster_spec}", '--cluster={"ps": ["p:1"], "worker": ["w:1", "w:2"]}'),
        ("{chief_hosts}|{evaluator_hosts}", "|e:1"),
        ("{replicas.ps} {replicas.worker} {replicas.chief} {replicas.evaluator}", "1 2 0 1"),
        ("{address} {threads} {run_dir} {checkpoint_dir}", "w:2 4 /runs/7 /c"),
        ("{{role}}", "{role}"),
        ("{{unknown}} {unknown} {} { role } {role", "{{unknown}} {unknown} {} { role } {role"),
        ('{"role": {"index": 1}}', '{"role": {"index": 1}}'),
        ("${VAR} ${role} ${index:-0}", "${VAR} ${role} ${index:-0}"),
        ("awk '{print}' {role}", "awk '{print}' worker"),
        ("{replicasXps}", "{replicasXps}"),
    ],
)
def test_placeholders(text, filled):
    assert environments.fill(text, VALUES) == filled


@given(st.text().filter(lambda text: not any("{" + name + "}" in text for name in VALUES)))
def test_text_without_placeholders_is_unchanged(text):
    assert environments.fill(text, VALUES) == text


@given(st.text(alphabet=st.characters(exclude_characters="${}")), st.sampled_from(sorted(VALUES)))
def test_a_placeholder_is_filled_wherever_it_stands(text, name):
    assert environments.fill(text + "{" + name + "}" + text, VALUES) == text + VALUES[name] + text
    assert environments.fill(text + "{{" + name + "}}" + text, VALUES) == text + "{" + name + "}" + text


@given(st.dictionaries(st.text(), st.integers() | st.text(alphabet="abc{}$ ")))
def test_json_is_unchanged(value):
    text = json.dumps(value)
    if not any("{" + name + "}" in text for name in VALUES):
        assert environments.fill(text, VALUES) == text


def test_tf_config_hides_the_evaluator_and_empty_roles():
    value = json.loads(environments.tf_config(config()))
    assert value == {
        "cluster": {"ps": ["p:1"], "worker": ["w:1", "w:2"]},
        "task": {"type": "worker", "index": 1},
    }


def test_tf_config_of_the_evaluator_has_the_whole_cluster():
    value = json.loads(environments.tf_config(config(role="evaluator", index=0)))
    assert value["cluster"] == {"ps": ["p:1"], "worker": ["w:1", "w:2"], "evaluator": ["e:1"]}
    assert value["task"] == {"type": "evaluator", "index": 0}


@pytest.mark.parametrize(
    ("role", "threads", "operations"), [("worker", 1, "2"), ("worker", 3, "3"), ("ps", 1, "1")]
)
def test_a_worker_runs_two_operations_at_once(role, threads, operations):
    """With one, workers of a ParameterServerStrategy hang."""
    seen = environments.command_environment(config(role=role), threads, {})
    assert seen["TF_NUM_INTEROP_THREADS"] == operations
    assert seen["TF_NUM_INTRAOP_THREADS"] == seen["OMP_NUM_THREADS"] == str(threads)
    asked = environments.command_environment(config(role=role), threads, {"TF_NUM_INTEROP_THREADS": "1"})
    assert asked["TF_NUM_INTEROP_THREADS"] == "1"


def test_the_environment():
    seen = environments.command_environment(
        config(environment={"MKL_NUM_THREADS": "9", "OUT": "{run_dir}/x"}),
        4,
        {"PATH": "/bin", "OMP_NUM_THREADS": "1", "TF_CONFIG": "stale"},
    )
    assert seen["PATH"] == "/bin"
    assert seen["OUT"] == "/runs/7/x"
    assert (seen["OMP_NUM_THREADS"], seen["MKL_NUM_THREADS"]) == ("1", "9"), "what the user set stays"
    unset = (
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    )
    assert {seen[name] for name in unset} == {"4"}
    assert json.loads(seen["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert "GRPC_FAIL_FAST" not in seen, "TensorFlow 2.1 ends itself when it reads a value of 2.4"
    assert seen["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    names = ("JOB", "ROLE", "INDEX", "ATTEMPT", "THREADS", "CHECKPOINT_DIR", "RUN_DIR")
    assert [seen["PACELINE_" + name] for name in names] == [
        "clicks",
        "worker",
        "1",
        "2",
        "4",
        "/c",
        "/runs/7",
    ]
    assert seen["PACELINE_REPORT_FILE"].endswith("/reports")


def test_output_is_not_held_back_unless_that_is_wanted():
    assert environments.command_environment(config(framework="plain"), 1, {})["PYTHONUNBUFFERED"] == "1"
    asked = environments.command_environment(config(), 1, {"PYTHONUNBUFFERED": ""})
    assert asked["PYTHONUNBUFFERED"] == ""


PODS = {
    "ps": ["clicks-ps-0.clicks.ns.svc:2222", "clicks-ps-1.clicks.ns.svc:2222"],
    "worker": ["127.0.0.1:4001", "[::1]:4002", "box:4003"],
}


@pytest.mark.parametrize("proxy", ["http_proxy", "HTTPS_PROXY", "grpc_proxy"])
def test_replicas_talk_without_a_proxy(proxy):
    hosts = ".clicks.ns.svc,127.0.0.1,::1,box"
    seen = environments.command_environment(config(cluster=PODS), 1, {proxy: "http://proxy:3128"})
    assert (seen["no_proxy"], seen["NO_PROXY"]) == (hosts, hosts)
    assert "no_grpc_proxy" not in seen, "it would hide no_proxy from gRPC"
    inherited = {proxy: "http://proxy:3128", "NO_PROXY": "own.net, ", "no_grpc_proxy": "grpc.net"}
    seen = environments.command_environment(config(cluster=PODS), 1, inherited)
    assert seen["no_proxy"] == seen["NO_PROXY"] == f"own.net,{hosts}"
    assert seen["no_grpc_proxy"] == f"grpc.net,{hosts}"
    of_the_job = config(cluster=PODS, environment={proxy: "http://proxy:3128"})
    assert environments.command_environment(of_the_job, 1, {})["no_proxy"] == hosts


def test_without_a_proxy_nothing_is_said_of_one():
    assert not [name for name in environments.command_environment(config(), 1, {}) if "proxy" in name.lower()]


TORCH = {
    "MASTER_ADDR": "w", "MASTER_PORT": "1", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "1", "GROUP_RANK": "1", "PET_MASTER_ADDR": "w",
    "PET_MASTER_PORT": "1", "PET_NODE_RANK": "1", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "1",
}  # fmt: skip


def test_a_pytorch_job_finds_itself_by_torch_variables():
    seen = environments.command_environment(
        config(framework="pytorch"), 4, {"TF_CONFIG": "stale", "PATH": "/bin"}
    )
    assert {name: seen[name] for name in TORCH} == TORCH
    assert not [name for name in seen if name.startswith(("TF_", "GRPC_", "GLIBC_"))]
    assert (seen["OMP_NUM_THREADS"], seen["PACELINE_INDEX"], seen["PATH"]) == ("4", "1", "/bin")


def test_rank_0_is_the_chief_and_an_evaluator_has_none():
    cluster = {"worker": ["w:1", "w:2"], "chief": ["[::1]:7"], "evaluator": ["e:1"]}
    ranks = {}
    for role, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        made = environments.torch_variables(
            config(framework="pytorch", cluster=cluster, role=role, index=index)
        )
        ranks[role, index] = made["RANK"], made["WORLD_SIZE"], made["MASTER_ADDR"], made["MASTER_PORT"]
    everybody = ("3", "::1", "7")
    assert ranks == {
        ("chief", 0): ("0", *everybody), ("worker", 0): ("1", *everybody), ("worker", 1): ("2", *everybody)
    }  # fmt: skip
    evaluator = config(framework="pytorch", cluster=cluster, role="evaluator", index=0)
    assert environments.torch_variables(evaluator) == {}


def test_a_plain_job_sees_nothing_of_a_framework():
    seen = environments.command_environment(config(framework="plain", environment={"A": "{role}"}), 4, {})
    assert seen.pop("A") == "worker"
    assert {name.partition("_")[0] for name in seen} == {"PACELINE", "PYTHONUNBUFFERED"}


@pytest.mark.parametrize(
    ("fields", "quota", "allowed", "online", "threads"),
    [
        ({"threads": 7, "own_cgroup": True}, 1.0, 2, 64, 7),
        ({"own_cgroup": True}, 1.5, 64, 64, 2),
        ({"own_cgroup": True}, 8.0, 4, 64, 4),
        ({"own_cgroup": True}, None, 4, 64, 4),
        ({"own_cgroup": True, "cpu_cores": 3.0}, None, 64, 64, 3),
        ({"own_cgroup": True, "cpu_cores": 8.0}, 2.0, 64, 64, 2),
        ({"own_cgroup": True}, None, 64, 64, 64),
        ({"own_cgroup": True}, 0.1, 64, 64, 1),
        ({"cpu_cores": 0.5}, None, 2, 2, 1),
        ({"cpu_cores": 4.0}, 2.0, 64, 64, 2),
        ({"cpu_cores": 1.0}, None, 2, 64, 1),
        ({}, 4.0, 64, 64, 4),
    ],
)
def test_thread_count(fields, quota, allowed, online, threads):
    assert environments.thread_count(config(**fields), quota, allowed, online) == threads


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"command": []}, "list of strings"),
        ({"command": "sh"}, "list of strings"),
        ({"exit": None}, "'exit'"),
    ],
)
def test_a_bad_config_is_named(change, says):
    fields = {name: value for name, value in {**FIELDS, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=says):
        configs.parse_config(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_what_is_no_object_is_no_config(text):
    with pytest.raises(ValueError, match=r"."):
        configs.parse_config(text)


PRINT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_the_command_really_sees_it(replica):
    one = replica(sys.executable, "-c", PRINT + "; print('{role} {address} {{job}} ${{VAR}}')")
    code, output, errors = one.run()
    assert (code, errors) == (0, "")
    environment, filled = output.splitlines()
    seen = json.loads(environment)
    assert filled == "worker h2:2222 {job} ${{VAR}}"
    assert json.loads(seen["TF_CONFIG"]) == {
        "cluster": {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]},
        "task": {"type": "worker", "index": 1},
    }
    assert seen["PACELINE_REPORT_FILE"] == str(one.reports)


def test_threads_follow_the_affinity(replica):
    one = replica(sys.executable, "-c", PRINT)
    code, output, _ = one.run(wrapper=("taskset", "-c", "0"))
    assert code == 0
    assert json.loads(output)["TF_NUM_INTRAOP_THREADS"] == "1"
    started = one.lines("started")[0]
    assert (started["threads"], started["cpuset"]) == (1, "0")


def test_what_is_too_long_for_linux_is_said(replica):
    one = replica("true", environment={"BIG": "x" * 200_000})
    code, _, errors = one.run()
    assert code == 126
    assert "128 KiB" in errors
    assert one.reason()["kind"] == "launch-failed"


def test_the_instrumentation_comes_first_on_pythons_path():
    folder = "/paceline/instrumentation"
    given = config(instrumentation=folder, environment={"PYTHONPATH": "{run_dir}/code"})
    assert environments.command_environment(given, 1, {})["PYTHONPATH"] == f"{folder}:/runs/7/code"
    inherited = {"PYTHONPATH": "/of/the/image"}
    assert environments.command_environment(config(instrumentation=folder), 1, inherited)["PYTHONPATH"] == (
        f"{folder}:/of/the/image"
    )
    assert environments.command_environment(config(instrumentation=folder), 1, {})["PYTHONPATH"] == folder


@pytest.mark.parametrize("inherited", [{}, {"PACELINE_INSTRUMENTATION": "off"}])
def test_it_can_be_switched_off(inherited):
    given = config(instrumentation=None if not inherited else "/paceline/instrumentation")
    assert "PYTHONPATH" not in environments.command_environment(given, 1, inherited)
