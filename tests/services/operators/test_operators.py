"""The operator over a cluster in memory: whole lives of jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.kubelets import node, silence
from support.operator_scenes import JOBS, is_worker, job, scene

from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import ClusterError, OutputLine
from paceline.model.jobs.job_specs import FitPolicy, SchedulingSpec
from paceline.rendering import agent_secrets, labels, pods
from paceline.services.cluster.annotations import RESUME
from paceline.services.operators import executions, reconcilers
from paceline.specs.job_file import custom_resources


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_a_job_lives_from_its_resource_to_success() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            assert it.pods() == ["clicks-ps-0-1", "clicks-worker-0-1", "clicks-worker-1-1"]
            assert it.status()["ready"] == "3/3"
            resource = it.cluster.of_kind(JOBS)["clicks"]
            for kind in (kinds.PODS, kinds.SERVICES, kinds.NETWORK_POLICIES, kinds.CONFIG_MAPS):
                assert all(executions.is_owned(each, resource) for each in it.cluster.of_kind(kind).values())
            it.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
            await it.until_phase("succeeded")
            assert it.pods() == ["clicks-worker-0-1", "clicks-worker-1-1"], "logs of workers stay"
            conditions = {each["type"]: each["status"] for each in it.status()["conditions"]}
            assert conditions["Succeeded"] == "True"
            assert conditions["Running"] == "False"
            it.cluster.remove(JOBS, "clicks")
            assert it.pods() == []

    run(test)


def test_a_replica_that_fails_comes_back_as_a_new_pod_and_too_often_ends_the_job() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            it.kubelet.exit_code = lambda pod: 3 if pod["metadata"]["name"] == "clicks-worker-0-1" else None
            await it.until(lambda: "clicks-worker-0-2" in it.pods())
            await it.until_phase("running")
            it.kubelet.exit_code = lambda pod: 3 if "worker-0" in pod["metadata"]["name"] else None
            await it.until_phase("failed")
            assert "worker-0 failed" in it.status()["message"]
            assert max(it.pods()) < "clicks-worker-0-5"

    run(test)


def test_a_replica_that_would_fail_again_does_not_come_back() -> None:
    async def test() -> None:
        async with scene() as it:
            # A bar of progress does not end its line before the error.
            said = OutputLine(
                "2027-01-15T08:00:00Z", "1/9\rModuleNotFoundError: No module named 'tensorflow'"
            )
            it.cluster.outputs["clicks-worker-0-1"] = [said]
            it.kubelet.exit_code = lambda pod: 3 if pod["metadata"]["name"] == "clicks-worker-0-1" else None
            await it.submit(job())
            await it.until_phase("failed")
            assert "clicks-worker-0-2" not in it.pods()

    run(test)


def test_what_vanished_while_no_watch_was_open_is_noticed() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            it.cluster.history.clear()  # nothing of this will be told
            it.cluster.remove(kinds.PODS, "clicks-worker-1-1")
            it.cluster.history.clear()
            it.cluster.cut_watches(forget=True)
            await it.until(lambda: "clicks-worker-1-2" in it.pods())
            await it.until_phase("running")

    run(test)


def test_a_job_is_suspended_and_brought_back_with_what_was_changed_meanwhile() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            await it.until(lambda: it.pods() == [])
            await it.edit("clicks", suspend=False, roles={"worker": {"replicas": 3}})
            await it.until_phase("running")
            assert it.pods() == [f"clicks-{one}-2" for one in ("ps-0", "worker-0", "worker-1")] + [
                "clicks-worker-2-1"
            ]
            told = it.cluster.of_kind(kinds.CONFIG_MAPS)["clicks"]["data"]["cluster.json"]
            assert "clicks-worker-2" in told

    run(test)


def test_a_role_that_a_job_drops_and_gets_back_goes_on_from_its_attempts() -> None:
    async def test() -> None:
        async with scene() as it:

            async def go_on_with(evaluators: int) -> None:
                await it.edit("clicks", suspend=True)
                await it.until_phase("stopped")
                await it.until(lambda: it.pods() == [])
                await it.edit("clicks", suspend=False, roles={"evaluator": {"replicas": evaluators}})
                await it.until_phase("running")

            await it.submit(job())
            await it.until_phase("running")
            await go_on_with(1)
            assert "clicks-evaluator-0-1" in it.pods()
            await go_on_with(0)
            assert phases(it.status())["evaluator-0"] == "stopped"
            assert it.status()["ready"] == "3/3"
            await it.end()
            it.start_operator()  # It knows what the status says, and nothing else.
            await go_on_with(1)
            assert "clicks-evaluator-0-2" in it.pods()

    run(test)


def test_a_job_that_waits_forgets_replicas_that_never_were() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="3")) as it:
            await it.submit(job(workers=4))
            await it.until_phase("pending")
            await it.edit("clicks", roles={"worker": {"replicas": 2}})
            await it.until_phase("running")
            assert phases(it.status()) == dict.fromkeys(("ps-0", "worker-0", "worker-1"), "running")

    run(test)


def phases(status: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["phase"] for each in status["replicas"]}


def test_pods_of_ps_are_deleted_when_the_last_trainer_has_ended_under_the_next_operator_too() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            it.kubelet.leaves = lambda pod: pod["metadata"]["name"] != "clicks-worker-1-1"
            await it.edit("clicks", suspend=True)
            left = {"ps-0": "running", "worker-0": "stopped", "worker-1": "stopping"}
            await it.until(lambda: phases(it.status()) == left)
            await it.end()
            it.start_operator()
            await it.until(lambda: it.operator.counters.reconciliations)
            assert "deletionTimestamp" not in it.cluster.of_kind(kinds.PODS)["clicks-ps-0-1"]["metadata"]
            assert phases(it.status()) == left
            it.kubelet.leaves = lambda pod: True
            await it.until_phase("stopped")
            await it.until(lambda: it.pods() == [])

    run(test)


def test_a_failed_job_is_brought_back_by_its_annotation() -> None:
    async def test() -> None:
        async with scene() as it:
            it.kubelet.exit_code = lambda pod: 3 if is_worker(pod) else None
            await it.submit(job())
            await it.until_phase("failed")
            it.kubelet.exit_code = lambda pod: None
            annotation = {"metadata": {"annotations": {RESUME: "1"}}}
            await it.cluster.patch(JOBS, "clicks", "default", annotation)
            await it.until_phase("running")

    run(test)


def test_what_runs_does_not_follow_changes_of_the_spec() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.edit("clicks", image="clicks:2", roles={"ps": None})
            it.kubelet.exit_code = lambda pod: 3 if pod["metadata"]["name"] == "clicks-worker-0-1" else None
            await it.end()
            it.start_operator()
            await it.until(lambda: "clicks-worker-0-2" in it.pods())
            (second,) = (
                each for name, each in it.cluster.of_kind(kinds.PODS).items() if name == "clicks-worker-0-2"
            )
            assert second["spec"]["containers"][0]["image"] == "clicks:1"
            await it.until_phase("running")
            assert it.status()["ready"] == "3/3"

    run(test)


def test_a_wrong_spec_says_what_is_wrong_and_begins_when_mended() -> None:
    async def test() -> None:
        async with scene() as it:
            resource = custom_resources.resource(job(), "default")
            resource["spec"]["roles"]["wroker"] = {"replicas": 1}
            await it.cluster.create(JOBS, resource)
            await it.until_phase("failed")
            assert "spec.roles.wroker: unknown key 'wroker'" in it.status()["message"]
            await it.edit("clicks", roles={"wroker": None})
            await it.until_phase("running")

    run(test)


@pytest.mark.parametrize("is_replaced", [False, True], ids=["", "another operator"])
def test_a_mistake_in_a_job_that_waits_for_room_can_be_mended(is_replaced: bool) -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="1")) as it:
            await it.submit(job())
            await it.until(lambda: "it waits for room" in it.status().get("message", ""))
            await it.edit("clicks", roles={"wroker": {"replicas": 1}})
            await it.until(lambda: "unknown key 'wroker'" in it.status().get("message", ""))
            if is_replaced:
                await it.end()
                it.start_operator()
            await it.edit("clicks", roles={"wroker": None, "worker": {"replicas": 1, "cpu": "100m"},
                                           "ps": {"cpu": "100m"}})  # fmt: skip
            await it.until_phase("running")
            assert it.status().get("message", "") == ""

    run(test)


@pytest.mark.parametrize("is_replaced", [False, True], ids=["", "another operator"])
def test_a_mistake_in_a_job_that_is_to_go_on_can_be_mended(is_replaced: bool) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            await it.edit("clicks", suspend=False, roles={"wroker": {"replicas": 1}})
            said = "the job is wrong: spec.roles.wroker: unknown key 'wroker'"
            await it.until(lambda: it.status().get("message", "").startswith(said))
            assert it.status()["phase"] == "stopped"
            if is_replaced:
                await it.end()
                it.start_operator()
            await it.edit("clicks", roles={"wroker": None})
            await it.until_phase("running")
            assert it.status().get("message", "") == ""

    run(test)


def test_a_pod_that_the_cluster_refuses_ends_the_job_with_its_reason() -> None:
    async def test() -> None:
        async with scene() as it:

            def refuse(verb: str, plural: str, name: str) -> None:
                if (verb, plural, name) == ("create", "pods", "clicks-worker-0-1"):
                    raise ClusterError("hostPath is not allowed", code=422, reason="Invalid")

            it.cluster.trouble = refuse
            await it.submit(job())
            await it.until_phase("failed")
            assert "hostPath is not allowed" in it.status()["message"]
            await it.until(lambda: it.pods() == [])

    run(test)


def test_a_replica_on_a_silent_node_is_replaced_although_its_pod_cannot_be_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconcilers, "LOOK_SECONDS", 0.05)

    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            found = it.cluster.of_kind(kinds.PODS)
            host = found["clicks-worker-0-1"]["spec"]["nodeName"]
            lost = {name for name, each in found.items() if each["spec"]["nodeName"] == host}
            it.kubelet.dead.add(host)
            silence(it.cluster, host, time.time() - 59.5)
            again = {f"{name[:-2]}-2" for name in lost}
            await it.until(lambda: again <= set(it.pods()))
            assert lost <= set(it.pods()), "they cannot be deleted"

    run(test)


def test_jobs_that_do_not_fit_together_run_one_after_the_other() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="4"), node("n1", cpu="4")) as it:
            both = ("one", "two")
            for name in both:
                await it.submit(job(name, workers=4))  # five cores of eight
            await it.until(lambda: "running" in [it.status(name).get("phase") for name in both])
            first = next(name for name in both if it.status(name).get("phase") == "running")
            second = next(name for name in both if name != first)
            await it.until(lambda: "it waits for room" in it.status(second).get("message", ""))
            assert it.pods(second) == []
            ending = first
            it.kubelet.exit_code = lambda pod: (
                0 if is_worker(pod) and pod["metadata"]["labels"][labels.JOB] == ending else None
            )
            await it.until_phase("succeeded", first)
            await it.until_phase("running", second)

    run(test)


def test_a_job_that_is_made_anew_does_not_reach_the_pods_of_the_one_before() -> None:
    """Pods of a deleted job end in their own time, and a Service gives them out until then."""

    async def test() -> None:
        async with scene() as it:
            seen = []
            for _ in range(2):
                await it.submit(job())
                await it.until_phase("running")
                seen.append([pod["metadata"]["labels"] for pod in it.cluster.of_kind(kinds.PODS).values()])
                service = it.cluster.of_kind(kinds.SERVICES)["clicks"]["spec"]["selector"]
                policy = it.cluster.of_kind(kinds.NETWORK_POLICIES)["clicks"]["spec"]
                ((admitted,), _) = (each.get("from", ()) for each in policy["ingress"])
                it.cluster.remove(JOBS, "clicks")
            before, now = seen
            for selector in (
                service, policy["podSelector"]["matchLabels"], admitted["podSelector"]["matchLabels"]
            ):  # fmt: skip
                assert all(selector.items() <= each.items() for each in now)
                assert not any(selector.items() <= each.items() for each in before)

    run(test)


def test_what_is_not_to_wait_for_room_fails_or_begins_at_once() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="2")) as it:
            await it.submit(job("fails", scheduling=SchedulingSpec(fit=FitPolicy.FAIL)))
            await it.submit(job("begins", scheduling=SchedulingSpec(fit=FitPolicy.OFF)))
            await it.until_phase("failed", "fails")
            assert "it does not fit: 1 more" in it.status("fails")["message"]
            await it.until_phase("running", "begins")

    run(test)


def test_a_job_that_waits_for_room_begins_when_it_is_not_to_wait_any_more() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="2")) as it:
            await it.submit(job())
            await it.until(lambda: "1 more" in it.status().get("message", ""))
            await it.edit("clicks", scheduling={"fit": "off"})
            await it.until_phase("running")

    run(test)


def test_a_job_that_is_edited_when_room_was_found_waits_for_room_for_what_it_is_now() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="4")) as it:
            requests, edits = it.operator._room_requests, []  # type: ignore[union-attr]
            look_again = requests._look_again

            def edit_first(key: tuple[str, str]) -> None:
                """Let the edit be what the job is looked at for."""
                requests._look_again = look_again
                edits.append(asyncio.create_task(it.edit("clicks", roles={"worker": {"cpu": "9"}})))

            requests._look_again = edit_first
            await it.submit(job())
            await it.until(lambda: edits and "more" in it.status().get("message", ""))
            assert it.pods() == []

    run(test)


@pytest.mark.parametrize("namespaces", [None, ["default"]], ids=["of all namespaces", "of one"])
def test_a_job_whose_queue_is_missing_begins_without_one(namespaces: list[str] | None) -> None:
    async def test() -> None:
        async with scene(namespaces=namespaces) as it:
            await it.submit(queued())
            await it.until(lambda: "night" in it.status().get("message", ""))
            assert it.pods() == []
            await it.edit("clicks", scheduling={"queue": None})
            await it.until_phase("running")

    run(test)


def test_an_ended_job_is_removed_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with scene() as it:
            it.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
            await it.submit(job(ttl_after_finished_seconds=1.0))
            await it.until(lambda: "clicks" not in it.cluster.of_kind(JOBS))
            assert it.pods() == []

    run(test)


def test_a_new_operator_lets_no_job_begin_before_it_knows_all_that_wait() -> None:
    """A job that has waited for too long keeps its turn though the operator reads it late."""

    async def test() -> None:
        async with scene() as it:
            await it.submit(job("runs", workers=3))
            await it.until_phase("running", "runs")
            await it.end()
            await it.submit(job("big", workers=6))
            await it.submit(job("small", workers=1))
            old = it.cluster.of_kind(JOBS)["big"]["metadata"]
            it.cluster.change(
                JOBS, "big", metadata={**old, "creationTimestamp": times.text(time.time() - 3600)}
            )

            def refuse_once(verb: str, plural: str, name: str) -> None:
                if (plural, name) == (JOBS.plural, "big"):
                    it.cluster.trouble = lambda *_: None
                    raise ClusterError("the API server is busy", code=500)

            it.cluster.trouble = refuse_once
            it.start_operator()
            await it.until(lambda: "waits for" in it.status("big").get("message", ""))
            await it.until(lambda: it.status("small").get("message"))
            assert "it waits for a job before it" in it.status("small")["message"]

    run(test)


def test_a_suspended_job_is_not_removed_however_long_it_is() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job(ttl_after_finished_seconds=0.01))
            await it.until_phase("running")
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            it.kubelet.exit_code = lambda pod: 0
            await it.submit(job("later", ttl_after_finished_seconds=0.01))
            await it.until(lambda: "later" not in it.cluster.of_kind(JOBS))
            assert it.status()["phase"] == "stopped"

    run(test)


def worker_count(it: Any, workers: int) -> None:
    roles = {"worker": {"replicas": workers}}
    return it.edit("clicks", roles=roles)


def test_a_running_job_follows_the_number_of_workers_of_its_resource_also_after_the_operator_was_killed() -> (
    None
):
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await worker_count(it, 4)
            await it.until(lambda: it.status()["ready"] == "5/5")
            assert (it.status()["workers"], it.status()["maxWorkers"]) == (4, 18)
            told = it.cluster.of_kind(kinds.CONFIG_MAPS)["clicks"]["data"]["cluster.json"]
            assert "clicks-worker-3.clicks.default.svc" in told
            await it.end()
            await worker_count(it, 1)
            it.start_operator()
            await it.until(lambda: it.status()["ready"] == "2/2")
            await it.until(lambda: it.pods() == ["clicks-ps-0-1", "clicks-worker-0-1"])
            await it.end()
            it.start_operator()
            await worker_count(it, 2)
            await it.until(lambda: it.status()["ready"] == "3/3")
            assert it.pods() == ["clicks-ps-0-1", "clicks-worker-0-1", "clicks-worker-1-2"]
            it.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
            await it.until_phase("succeeded")

    run(test)


def test_more_workers_than_there_is_room_for_leave_the_job_as_it_is_until_there_is() -> None:
    async def test() -> None:
        async with scene(node("n0")) as it:
            await it.submit(job())
            await it.until_phase("running")
            await worker_count(it, 4)
            await it.until(
                lambda: (
                    "not scaled to 4 workers: there is no room for 2 more" in it.status().get("message", "")
                )
            )
            assert (it.status()["ready"], it.status()["phase"]) == ("3/3", "running")
            await it.cluster.create(kinds.NODES, node("n1"))
            await it.until(lambda: it.status()["ready"] == "5/5")
            assert "message" not in it.status()
            await worker_count(it, 19)
            await it.until(lambda: "18 workers at most" in it.status().get("message", ""))
            assert it.status()["workers"] == 4

    run(test)


@pytest.mark.parametrize(
    "reference",
    [
        {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "name": "clicks", "uid": "u"},
        {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "name": "gone", "uid": "v"},
        {"apiVersion": "other.dev/v1", "kind": "TrainingJob", "name": "clicks", "uid": "w"},
    ],
    ids=lambda reference: reference["uid"],
)
def test_a_pod_whose_labels_a_user_took_away_does_not_end_the_operator(reference: dict[str, str]) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            stray = {"name": "stray", "namespace": "default", "ownerReferences": [reference]}
            for labels_left in ({}, {"labels": {"team": "ads"}}):
                made = {"metadata": {**stray, **labels_left}, "spec": {"containers": []}, "status": {}}
                await it.cluster.create(kinds.PODS, made)
                it.cluster.remove(kinds.PODS, "stray", "default")
            it.kubelet.exit_code = lambda pod: 0 if "worker" in pod["metadata"]["name"] else None
            await it.until_phase("succeeded")

    run(test)


@pytest.mark.parametrize("kind", [kinds.SERVICES, kinds.CONFIG_MAPS, kinds.SECRETS])
def test_what_another_has_made_under_a_name_of_the_job_is_said(kind: kinds.ResourceKind) -> None:
    async def test() -> None:
        async with scene() as it:
            name = agent_secrets.name("clicks") if kind is kinds.SECRETS else "clicks"
            taken = {"metadata": {"name": name, "namespace": "default", "labels": {labels.JOB: "other"}}}
            await it.cluster.create(kind, taken)
            await it.submit(job())
            said = f"{kind.name} {name} does not belong to the job"
            await it.until(lambda: said in it.status().get("message", ""), said)
            it.cluster.remove(kind, name, "default")
            await it.until_phase("running")

    run(test)


def queued() -> Any:
    return job(scheduling=SchedulingSpec(queue="night"))


def test_a_job_of_a_queue_that_is_not_there_waits_and_says_so() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(queued())
            await it.until(lambda: "no queue night of Kueue or Volcano" in it.status().get("message", ""))
            assert (it.pods(), it.status()["phase"]) == ([], "pending")

    run(test)


@pytest.mark.parametrize("is_replaced", [False, True], ids=["", "another operator"])
def test_a_job_that_waits_in_its_queue_says_so_until_it_runs(is_replaced: bool) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.cluster.create(
                kinds.LOCAL_QUEUES, {"metadata": {"name": "night", "namespace": "default"}}
            )
            it.kubelet.is_full = True
            await it.submit(queued())
            message = "3 pods wait for the queue night (paceline why says more)"
            await it.until(lambda: it.status().get("message") == message)
            assert it.status()["phase"] == "starting"
            if is_replaced:
                await it.end()
                it.start_operator()
            it.kubelet.is_full = False
            await it.until_phase("running")
            assert it.status().get("message", "") == ""

    run(test)


@pytest.mark.parametrize("kind", [kinds.LOCAL_QUEUES, kinds.OLD_LOCAL_QUEUES], ids=lambda kind: kind.version)
def test_pods_in_a_queue_of_kueue_are_one_group_with_later_attempts_too(kind: kinds.ResourceKind) -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="1")) as it:  # the queue decides, not what fits
            queue = {"metadata": {"name": "night", "namespace": "default"}}
            await it.cluster.create(kind, queue)
            await it.submit(queued())
            await it.until_phase("running")
            await it.end()
            it.start_operator()
            it.kubelet.exit_code = lambda pod: 3 if pod["metadata"]["name"] == "clicks-worker-0-1" else None
            await it.until(lambda: "clicks-worker-0-2" in it.pods())
            await it.until_phase("running")
            for pod in it.cluster.of_kind(kinds.PODS).values():
                assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "night"
                assert pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "clicks"
                assert pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"
                assert "affinity" not in pod["spec"], "where they go is the scheduler's matter"
            await worker_count(it, 3)
            await it.until(lambda: "one group in the queue night" in it.status().get("message", ""))

    run(test)


def test_a_job_whose_pods_its_queue_takes_away_comes_back_as_often_as_that_happens() -> None:
    """Kueue marks the pods of a group and deletes them; to make them again is the controller's part."""
    taken = {
        "type": "TerminationTarget", "status": "True", "reason": "WorkloadEvicted",
        "message": "Preempted to accommodate a workload",
    }  # fmt: skip

    async def test() -> None:
        async with scene() as it:
            await it.cluster.create(
                kinds.LOCAL_QUEUES, {"metadata": {"name": "night", "namespace": "default"}}
            )
            await it.submit(queued())
            for attempt in range(1, 6):
                await it.until(lambda: len(it.pods()) == 3 and it.status()["phase"] == "running")
                for name, pod in it.cluster.of_kind(kinds.PODS).items():
                    assert name.endswith(f"-{attempt}")
                    it.cluster.change(kinds.PODS, name, status={**pod["status"], "conditions": [taken]})
                    it.cluster.remove(kinds.PODS, name, "default")
                await it.until(lambda: it.status()["phase"] == "restarting")
            assert {each["restarts"] for each in it.status()["replicas"]} == {0}

    run(test)


def gang() -> Any:
    return job(scheduling=SchedulingSpec(fit=FitPolicy.GANG, priority_class="urgent"))


def test_a_gang_is_a_group_of_the_scheduler_and_does_not_wait_for_the_operator() -> None:
    async def test() -> None:
        async with scene(node("n0", cpu="1")) as it:  # the scheduler decides, not what fits
            await it.submit(gang())
            await it.until_phase("running")
            (group,) = it.cluster.of_kind(kinds.GANGS).values()
            assert group["spec"] == {
                "schedulingPolicy": {"gang": {"minCount": 3}},
                "disruptionMode": {"all": {}},
                "priorityClassName": "urgent",
            }
            assert executions.is_owned(group, it.cluster.of_kind(JOBS)["clicks"])
            for pod in it.cluster.of_kind(kinds.PODS).values():
                assert pod["spec"]["schedulingGroup"] == {"podGroupName": "clicks"}
                assert pod["spec"]["priorityClassName"] == "urgent"

    run(test)


def test_a_gang_on_a_cluster_that_knows_none_waits_and_says_so() -> None:
    async def test() -> None:
        async with scene() as it:

            def refuse(verb: str, plural: str, name: str) -> None:
                if (verb, plural) == ("create", kinds.GANGS.plural):
                    raise ClusterError("the server could not find the requested resource", code=404)

            it.cluster.trouble = refuse
            await it.submit(gang())
            await it.until(lambda: "knows no groups of pods" in it.status().get("message", ""))
            assert it.pods() == []
            it.cluster.trouble = lambda verb, plural, name: None
            await it.until_phase("running")

    run(test)


def test_a_job_that_leaves_its_queue_begins_again_without_it() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.cluster.create(kinds.VOLCANO_QUEUES, {"metadata": {"name": "night"}})
            await it.submit(queued())
            await it.until_phase("running")
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            await it.edit("clicks", suspend=False, scheduling={"queue": None})
            await it.until_phase("running")
            newest = [each for name, each in it.cluster.of_kind(kinds.PODS).items() if name.endswith("-2")]
            assert len(newest) == 3
            assert {each["spec"].get("schedulerName") for each in newest} == {None}

    run(test)


def test_pods_in_a_queue_of_volcano_are_of_a_pod_group_that_goes_with_the_job() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.cluster.create(kinds.VOLCANO_QUEUES, {"metadata": {"name": "night"}})
            await it.submit(queued())
            await it.until_phase("running")
            (group,) = it.cluster.of_kind(kinds.POD_GROUPS).values()
            assert group["spec"] == {"minMember": 3, "queue": "night"}
            assert executions.is_owned(group, it.cluster.of_kind(JOBS)["clicks"])
            for pod in it.cluster.of_kind(kinds.PODS).values():
                assert pod["spec"]["schedulerName"] == "volcano"
                grouped = {"scheduling.k8s.io/group-name": "clicks"}
                assert pod["metadata"]["annotations"] == {**pods.SCRAPED, **grouped}
            it.cluster.remove(JOBS, "clicks")
            assert it.cluster.of_kind(kinds.POD_GROUPS) == {}

    run(test)


@pytest.mark.parametrize(
    ("made", "kind", "size"),
    [
        (queued, kinds.POD_GROUPS, lambda group: group["spec"]["minMember"]),
        (gang, kinds.GANGS, lambda group: group["spec"]["schedulingPolicy"]["gang"]["minCount"]),
    ],
    ids=["Volcano", "the scheduler"],
)
def test_a_job_that_begins_again_with_other_workers_has_a_group_of_that_size(
    made: Callable[[], Any], kind: kinds.ResourceKind, size: Callable[[Any], int]
) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.cluster.create(kinds.VOLCANO_QUEUES, {"metadata": {"name": "night"}})
            await it.submit(made())
            await it.until_phase("running")
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            await it.edit("clicks", suspend=False, roles={"worker": {"replicas": 4}})
            await it.until_phase("running")
            (group,) = it.cluster.of_kind(kind).values()
            assert size(group) == 5

    run(test)


@pytest.mark.parametrize(
    "written",
    [
        {"version": 2},
        {"version": 2, "phase": "sharding", "replicas": None, "shards": [{"ps": 3}]},
        {"phase": "sharding"},
        {"replicas": None},
        {"replicas": [{"name": "ps-0", "phase": "frozen", "attempt": 1, "restarts": 0}]},
    ],
)
def test_a_job_whose_status_cannot_be_read_is_left_alone(written: dict[str, Any]) -> None:
    """A rollback, or two versions beside each other: what runs goes on, and is looked after again later."""

    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            pods = it.cluster.of_kind(kinds.PODS)
            await it.end()
            readable = it.status()
            await it.cluster.patch(JOBS, "clicks", "default", {"status": written}, status=True)
            changed = it.status()
            it.start_operator()
            await it.until(lambda: unreadable(it.status()))
            assert it.operator is not None
            assert it.operator.unreadable == 1
            await it.edit("clicks", suspend=True)
            await it.submit(job("other"))
            await it.until_phase("running", "other")
            left = {name: each for name, each in it.status().items() if name != "conditions"}
            assert left == {name: each for name, each in changed.items() if name != "conditions"}
            found = it.cluster.of_kind(kinds.PODS)
            assert {name: found[name] for name in pods} == pods, "nothing is begun or ended"
            told = [each for each in it.cluster.of_kind(kinds.EVENTS).values() if each["type"] == "Warning"]
            assert [each["reason"] for each in told] == ["StatusUnreadable"]
            emptied = dict.fromkeys(it.status())
            await it.cluster.patch(
                JOBS, "clicks", "default", {"status": {**emptied, **readable}}, status=True
            )
            await it.until_phase("stopped")
            assert not unreadable(it.status())
            assert it.operator.unreadable == 0

    run(test)


def test_a_job_whose_spec_as_it_began_is_lost_or_of_a_newer_version_is_left_alone() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.end()
            known = it.cluster.of_kind(kinds.CONFIG_MAPS)["clicks"]
            snapshot = known["data"][executions.SNAPSHOT].replace("spec:", "spec:\n  shards: 3", 1)
            newer = {**known, "data": {**known["data"], executions.SNAPSHOT: snapshot}}
            await it.cluster.replace(kinds.CONFIG_MAPS, newer)
            it.start_operator()
            await it.until(lambda: "shards" in unreadable(it.status()))
            await it.end()
            it.cluster.remove(kinds.CONFIG_MAPS, "clicks")
            await it.edit("clicks", shards=3)
            it.start_operator()
            await it.until(lambda: "its spec is lost" in unreadable(it.status()))
            assert it.status()["phase"] == "running"
            assert it.pods() == ["clicks-ps-0-1", "clicks-worker-0-1", "clicks-worker-1-1"]

    run(test)


def unreadable(status: dict[str, Any]) -> str:
    found = [each for each in status["conditions"] if each["type"] == "StatusUnreadable"]
    return str(found[0]["message"]) if found else ""
