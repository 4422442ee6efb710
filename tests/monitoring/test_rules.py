"""What is shipped for Prometheus, judged by Prometheus itself (skipped where it is not)."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from support import prometheuses
from support.monitoring import DASHBOARDS, FOLDER, expressions

from paceline.agent.paceline_agent import configs
from paceline.agent.paceline_agent.metrics import Metrics
from paceline.rendering import labels, pods

RULES = FOLDER / "rules.yaml"


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [prometheuses.program("promtool"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def judged(folder: Path, rules: str) -> subprocess.CompletedProcess[str]:
    (folder / "rules.yaml").write_text(rules)
    shutil.copy(Path(__file__).parent / "rules_test.yaml", folder)
    return promtool("test", "rules", "rules_test.yaml", folder=folder)


def test_rules_are_rules(tmp_path: Path) -> None:
    done = promtool("check", "rules", str(RULES), folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_rules_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    done = judged(tmp_path, RULES.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("what", "otherwise"),
    [
        ("> 1.5", "> 1.9"),
        ("> 0.1\n", "> 0.6\n"),
        ("== 0", "== 1"),
        ("> 3\n", "> 4\n"),
        ("> 0.3", "> 0.5"),
        ("> 0.95", "> 0.4"),
        ("> 60", "> 6000"),
        (" > 1\n", " > 2\n"),
        ("and on (namespace, job) paceline_replica_cpu_seconds_total", ""),
    ],
)  # fmt: skip
def test_other_rules_are_noticed(tmp_path: Path, what: str, otherwise: str) -> None:
    rules = RULES.read_text()
    assert what in rules
    assert judged(tmp_path, rules.replace(what, otherwise)).returncode != 0


def agent_page(role: str, index: int, job: str = "clicks") -> Callable[[], str]:
    """Return what the agent of a replica answers for ``/metrics``: each time a second more."""
    names = ("spool", "exit", "reports")
    known = {"job": job, "role": role, "index": index, "attempt": 1, "command": ["x"], "cluster": {}}
    metrics = Metrics(configs.parse_config(json.dumps({**known, **dict.fromkeys(names, "/x")})))

    def page() -> str:
        now = time.time()
        cores = 0.9 if (role, index) == ("ps", 0) else 0.1
        sample = {"type": "sample", "at": now, "interval_seconds": 1.0, "cpu_cores": cores}
        metrics.take(
            {**sample, "memory_bytes": 1 << 20, "network_sent_bytes": 1000, "throttled_seconds": 0.5}
        )
        if role == "worker":
            metrics.take({"type": "step", "at": now, "steps": 10, "examples": 640, "input_wait_seconds": 0.1})
        return metrics.text()

    return page


REPLICAS = [("ps", 0), ("ps", 1), ("worker", 0)]
#: Of a replica that speaks for another job, of nodes and of the operator, too.
LIES = (
    'paceline_replica_cpu_seconds_total{job="clicks",role="ps",index="0",namespace="ml",pod="x"} 9\n'
    'kube_pod_info{namespace="ml"} 1\npaceline_operator_unreadable_jobs{namespace="paceline"} 9\n'
)
MANY = "".join(f'paceline_replica_threads{{x="{number}"}} 1\n' for number in range(600))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with the shipped scraping and rules; only the pods are told to it instead of found.

    Debian's build has no Kubernetes in it.
    """
    folder = tmp_path_factory.mktemp("prometheus")
    scraping, _ = yaml.safe_load((FOLDER / "scrape.yaml").read_text())["scrape_configs"]
    assert [each["role"] for each in scraping.pop("kubernetes_sd_configs")] == ["pod"]
    rules = RULES.read_text().replace("[2m]", "[10s]").replace("interval: 30s", "interval: 1s")
    (folder / "rules.yaml").write_text(rules)
    pages = {f"/{role}-{index}": agent_page(role, index) for role, index in REPLICAS}
    tfjob = agent_page("worker", 3, job="theirs")
    with prometheuses.serving(
        {
            **pages,
            "/other": lambda: "other 1\n",
            "/lies": lambda: LIES,
            "/many": lambda: MANY,
            "/tfjob": tfjob,
        }
    ) as address:

        def pod(name: str, path: str, port: str = pods.METRICS, **meta: str) -> dict[str, Any]:
            found = {"namespace": "ml", "pod_name": name, "pod_phase": "Running", "pod_node_name": "n1"}
            found |= {"pod_container_port_name": port, **meta}
            given = {f"__meta_kubernetes_{key}": value for key, value in found.items()}
            return {"targets": [address], "labels": {"__metrics_path__": path, **given}}

        def of(job: str, **own: str) -> dict[str, str]:
            """Return what is known of a pod by its labels."""
            every = {labels.JOB: job, **own}
            clean = {key.replace(".", "_").replace("/", "_"): value for key, value in every.items()}
            return {f"pod_label_{key}": value for key, value in clean.items()} | {
                f"pod_labelpresent_{key}": "true" for key in clean
            }

        def replica(job: str, role: str, index: int) -> dict[str, str]:
            return of(job, **{labels.ROLE: role, labels.INDEX: str(index), labels.ATTEMPT: "1"})

        present = "pod_labelpresent_" + labels.JOB.replace(".", "_").replace("/", "_")
        ours = [pod(f"clicks-{r}-{i}-1", f"/{r}-{i}", **replica("clicks", r, i)) for r, i in REPLICAS]
        ours += [
            pod("liar-worker-4-1", "/lies", **replica("liar", "worker", 4)),
            pod("loud-worker-0-1", "/many", **replica("loud", "worker", 0)),
            pod("theirs-worker-3", "/tfjob", **of("theirs", **{labels.ROLE: "worker"})),
        ]
        others = [
            pod("other", "/other"),
            pod("clicks-ps-0-1", "/other", port="training", **{present: "true"}),
            pod("clicks-ps-1-2", "/other", **{present: "true", "pod_phase": "Pending"}),
        ]
        scraping |= {"static_configs": [*ours, *others], "scrape_interval": "1s"}
        config = {
            "global": {"evaluation_interval": "1s"},
            "rule_files": [str(folder / "rules.yaml")],
            "scrape_configs": [scraping],
        }
        with prometheuses.running(config, folder) as found:
            yield found


@pytest.mark.slow
def test_the_shipped_scraping_finds_agents_and_keeps_their_words(url: str) -> None:
    def found() -> list[Any]:
        return prometheuses.queried(url, 'paceline_replica_cpu_seconds_total{job="clicks"}')

    prometheuses.until(lambda: len(found()) == len(REPLICAS), found)
    (ps,) = prometheuses.queried(url, 'paceline_replica_cpu_seconds_total{role="ps",index="0"}')
    expected = {"job": "clicks", "namespace": "ml", "pod": "clicks-ps-0-1", "node": "n1", "attempt": "1"}
    assert ps["metric"].items() >= expected.items()
    assert prometheuses.queried(url, "other") == []
    assert len(prometheuses.queried(url, 'up{job="clicks"}')) == len(REPLICAS)


@pytest.mark.slow
def test_a_replica_is_believed_of_itself_alone(url: str) -> None:
    def said() -> list[Any]:
        return prometheuses.queried(url, '{job=~"liar|theirs",__name__="paceline_replica_cpu_seconds_total"}')

    prometheuses.until(lambda: len(said()) == 2, said)
    by_job = {each["metric"]["job"]: each["metric"] for each in said()}
    of_liar = {"role": "worker", "index": "4", "pod": "liar-worker-4-1", "node": "n1", "namespace": "ml"}
    assert by_job["liar"].items() >= of_liar.items()
    assert not [name for metric in by_job.values() for name in metric if name.startswith("exported_")]
    of_template = {"role": "worker", "index": "3", "attempt": "1", "pod": "theirs-worker-3"}
    assert by_job["theirs"].items() >= of_template.items(), "what no label says"
    for other in ("kube_pod_info", "paceline_operator_unreadable_jobs", "paceline_replica_threads"):
        assert prometheuses.queried(url, other) == []

    def loud() -> list[str]:
        return [each["value"][1] for each in prometheuses.queried(url, 'up{job="loud"}')]

    prometheuses.until(
        lambda: loud() == ["0"], lambda: f"what says too much is not taken, and told of: {loud()}"
    )


@pytest.mark.slow
def test_the_shipped_rules_see_a_hot_ps_in_what_agents_say(url: str) -> None:
    def imbalance() -> list[Any]:
        return prometheuses.queried(url, 'role:paceline_cpu_cores:max_over_mean{job="clicks",role="ps"}')

    prometheuses.until(imbalance, lambda: httpx2.get(f"{url}/api/v1/rules").text)
    assert float(imbalance()[0]["value"][1]) == pytest.approx(1.8, abs=0.1)
    groups = httpx2.get(f"{url}/api/v1/rules").json()["data"]["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
    prometheuses.until(lambda: prometheuses.queried(url, "job:paceline_examples:rate2m"), imbalance)


@pytest.mark.slow
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_what_dashboards_ask_is_understood_and_answered(url: str, path: Path) -> None:
    prometheuses.until(lambda: prometheuses.queried(url, "job:paceline_steps:rate2m"), lambda: "no rules yet")
    values = {"$__rate_interval": "10s", "$namespace": "ml", "$job": "clicks", "$role": ".*"}
    answered = []
    for each in expressions(json.loads(path.read_text())):
        if not each.startswith("label_values("):
            for name, value in values.items():
                each = each.replace(name, value)
            answered += [bool(prometheuses.queried(url, each))]
    assert sum(answered) > 7, "most panels show what agents say"
