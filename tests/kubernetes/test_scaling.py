"""A job that runs follows the number of workers that ``kubectl scale`` gives it."""

from __future__ import annotations

from support.operator_scenes import job
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    kubectl,
    pod_names,
    status,
    submit,
    until,
    until_phase,
)


def test_kubectl_scales_a_job_that_runs(operator: OperatorProcess) -> None:
    submit(job("elastic", termination_grace_seconds=1.0))
    until_phase("elastic", "running")
    kubectl("scale", "tj/elastic", "--replicas=4", "-n", NAMESPACE)
    until(lambda: status("elastic")["ready"] == "5/5", lambda: status("elastic"))
    operator.kill()
    operator.start()
    kubectl("scale", "tj/elastic", "--replicas=1", "-n", NAMESPACE)
    wanted = ["elastic-ps-0-1", "elastic-worker-0-1"]
    until(lambda: pod_names("elastic") == wanted, lambda: pod_names("elastic"))
    until(lambda: status("elastic")["ready"] == "2/2", lambda: status("elastic"))
    assert status("elastic")["workers"] == 1
    kubectl("scale", "tj/elastic", "--replicas=99", "-n", NAMESPACE)
    until(lambda: "18 workers at most" in status("elastic").get("message", ""), lambda: status("elastic"))
