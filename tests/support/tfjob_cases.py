"""Forty TFJobs: what their replicas do, how each ends under Kubeflow's operator, and what differs under ours.

What is expected of Kubeflow's operator was read in kubeflow/training-operator 1.9
(``pkg/controller.v1/tensorflow``, ``pkg/controller.v1/common``, ``pkg/core``) and is tried on a real one by
``kubernetes/test_conformance.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

#: Differences that `docs/kubernetes.md` has for all TFJobs, and that ``paceline convert`` does not repeat.
KNOWN = {
    "alone": "A worker alone gets a `TF_CONFIG`, too.",
    "attempts": "Each attempt is a pod of its own",
    "burstable": "requests a millicore less than its limit",
    "evaluator": "shows the evaluator to the evaluator alone",
}
IMAGE = "registry.example.com/team/clicks:1"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TFJobEnd:
    """Where a job stands when nothing changes any more.

    Attributes:
        phase: ``succeeded``, ``failed``, ``suspended``, ``running``, or ``gone`` if the job was deleted.
        running: the replicas that have a pod which runs.
        ended: the replicas that have a pod which has ended, and none which runs.
    """

    phase: str
    running: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TFJobCase:
    """A TFJob and its expected end.

    Attributes:
        name: of the job.
        spec: of the TFJob.
        exits: which replicas end, in order, and with which exit codes. Each is awaited before it ends.
        end: the end under Kubeflow's operator.
        our_exits: what ends under our operator beyond ``exits``, until our job is at its end, too.
        our_end: the end under our operator; None: the same.
        differences: what else differs (an aspect of `conformance.ReplicaView`, or ``end``), and why: the path
            of the part of the TFJob about which ``paceline convert`` says it, or one of ``KNOWN``.
        is_touched: whether the TFJob is changed again and again, because Kubeflow's operator looks at it only
            then: it never acts on a deadline by itself.
    """

    name: str
    spec: Mapping[str, Any]
    exits: tuple[tuple[str, int], ...] = ()
    end: TFJobEnd
    our_exits: tuple[tuple[str, int], ...] = ()
    our_end: TFJobEnd | None = None
    differences: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_touched: bool = False


def _role(replicas: int | None = 1, restart: str | None = "Never", **more: Any) -> dict[str, Any]:
    """Return a role; what is given beyond that goes into its container, ``pod`` into its pod's spec."""
    pod, labels = more.pop("pod", {}), more.pop("labels", {})
    container = {"name": "tensorflow", "image": IMAGE, "command": ["python", "train.py"], **more}
    template: dict[str, Any] = {"spec": {"containers": [container], **pod}}
    if labels:
        template["metadata"] = {"labels": labels}
    fields = {"replicas": replicas, "restartPolicy": restart, "template": template}
    return {key: value for key, value in fields.items() if value is not None}


def _spec(
    policy: Mapping[str, Any] | None = None, success: str | None = None, **roles: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec of a TFJob; what still runs is deleted at its end, if the policy says nothing else."""
    own = {} if success is None else {"successPolicy": success}
    return {"runPolicy": {"cleanPodPolicy": "Running", **(policy or {})}, **own, "tfReplicaSpecs": roles}


def _end(phase: str, *, running: str = "", ended: str = "") -> TFJobEnd:
    return TFJobEnd(phase=phase, running=frozenset(running.split()), ended=frozenset(ended.split()))


_LIMITED = {"limits": {"cpu": "1500m", "memory": "2Gi"}, "requests": {"cpu": "1500m", "memory": "2Gi"}}
_WHOLE = {"limits": {"cpu": "2", "memory": "2Gi"}}
_WITH_VOLUME = _role(
    pod={"volumes": [{"name": "ssd", "hostPath": {"path": "/mnt/ssd"}}]},
    volumeMounts=[{"name": "ssd", "mountPath": "/ssd", "readOnly": True}],
)

#: What a replica is given.
_GIVEN = (
    TFJobCase(
        name="servers-and-workers",
        spec=_spec(PS=_role(2), Worker=_role(3)),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="a-chief",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(2)),
        exits=(("chief-0", 0),),
        end=_end("succeeded", ended="chief-0"),
    ),
    TFJobCase(
        name="an-evaluator",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(), Evaluator=_role()),
        exits=(("chief-0", 0),),
        end=_end("succeeded", ended="chief-0"),
        differences={"cluster": "evaluator"},
    ),
    TFJobCase(
        name="a-master",
        spec=_spec(Master=_role(), PS=_role(), Worker=_role()),
        exits=(("master-0", 0),),
        end=_end("succeeded", ended="master-0"),
        differences={"cluster": "spec.tfReplicaSpecs.Master", "task": "spec.tfReplicaSpecs.Master"},
    ),
    TFJobCase(
        name="roles-in-lower-case",
        spec=_spec(ps=_role(), worker=_role()),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="replicas-not-said",
        spec=_spec(PS=_role(None, None), Worker=_role(None, None)),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="one-worker-alone",
        spec=_spec(Worker=_role()),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={"cluster": "alone", "task": "alone"},
    ),
    TFJobCase(
        name="a-port-of-its-own",
        spec=_spec(
            PS=_role(ports=[{"name": "tfjob-port", "containerPort": 3333}]),
            Worker=_role(ports=[{"name": "tfjob-port", "containerPort": 3333}]),
        ),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={
            "cluster": "spec.tfReplicaSpecs.PS.template.spec.containers[0].ports",
            "port": "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports",
        },
    ),
    TFJobCase(
        name="environment",
        spec=_spec(
            PS=_role(env=[{"name": "ROOT", "value": "/data"}, {"name": "DAY", "value": "$(ROOT)/$$(DAY)"}]),
            Worker=_role(env=[{"name": "EMPTY"}, {"name": "BRACES", "value": "{index} ${HOME} $(HOME)"}]),
        ),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="words-of-the-command",
        spec=_spec(
            PS=_role(command=["sh", "-c"], args=["exec train --role=ps"]),
            Worker=_role(
                command=["python", "train.py"],
                args=["--data=$(DATA)", "", "--cluster={cluster_spec}", "$$x `id` 'y' \"z\""],
                env=[{"name": "DATA", "value": "/data"}],
                workingDir="/srv/app",
            ),
        ),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={"working_dir": "spec.tfReplicaSpecs.Worker.template.spec.containers[0].workingDir"},
    ),
    TFJobCase(
        name="requests-and-limits",
        spec=_spec(PS=_role(resources=_LIMITED), Worker=_role(resources={"limits": _LIMITED["limits"]})),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={"resources": "burstable"},
    ),
    TFJobCase(
        name="whole-cores",
        spec=_spec(PS=_role(resources=_WHOLE), Worker=_role(resources=_WHOLE)),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="requests-alone",
        spec=_spec(PS=_role(resources=_LIMITED), Worker=_role(resources={"requests": _LIMITED["requests"]})),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={"resources": "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources"},
    ),
    TFJobCase(
        name="places",
        spec=_spec(
            PS=_role(pod={"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "gpu"}]}),
            Worker=_role(
                pod={"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "gpu"}]}
            ),
        ),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="labels-and-grace",
        spec=_spec(
            PS=_role(labels={"team": "ads"}, pod={"terminationGracePeriodSeconds": 60}),
            Worker=_role(labels={"team": "ads"}, pod={"terminationGracePeriodSeconds": 60}),
        ),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
        differences={"labels": "spec.tfReplicaSpecs.PS.template.metadata.labels"},
    ),
    TFJobCase(
        name="volumes",
        spec=_spec(PS=_WITH_VOLUME, Worker=_WITH_VOLUME),
        exits=(("worker-0", 0),),
        end=_end("succeeded", ended="worker-0"),
    ),
)

#: When a job succeeds.
_SUCCESS = (
    TFJobCase(
        name="worker-1-ends-first",
        spec=_spec(PS=_role(), Worker=_role(2)),
        exits=(("worker-1", 0), ("worker-0", 0)),
        end=_end("succeeded", ended="worker-0 worker-1"),
    ),
    TFJobCase(
        name="all-workers-are-waited-for",
        spec=_spec(PS=_role(), Worker=_role(2), success="AllWorkers"),
        exits=(("worker-0", 0), ("worker-1", 0)),
        end=_end("succeeded", ended="worker-0 worker-1"),
    ),
    TFJobCase(
        name="the-last-of-all-workers-fails",
        spec=_spec(PS=_role(), Worker=_role(2), success="AllWorkers"),
        exits=(("worker-0", 0), ("worker-1", 1)),
        end=_end("failed", ended="worker-0 worker-1"),
    ),
    TFJobCase(
        name="a-chief-decides-before-all-workers",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(2), success="AllWorkers"),
        exits=(("worker-0", 0), ("chief-0", 0)),
        end=_end("succeeded", ended="chief-0 worker-0"),
    ),
    TFJobCase(
        name="a-server-completes-first",
        spec=_spec(PS=_role(2), Worker=_role()),
        exits=(("ps-1", 0), ("worker-0", 0)),
        end=_end("succeeded", ended="ps-1 worker-0"),
    ),
    TFJobCase(
        name="an-evaluator-completes-first",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(), Evaluator=_role()),
        exits=(("evaluator-0", 0), ("chief-0", 0)),
        end=_end("succeeded", ended="chief-0 evaluator-0"),
        differences={"cluster": "evaluator"},
    ),
)

#: What becomes of pods, and of the job, when it has ended.
_CLEAN_UP = (
    TFJobCase(
        name="all-is-cleaned-up",
        spec=_spec({"cleanPodPolicy": "All"}, PS=_role(), Worker=_role(2)),
        exits=(("worker-1", 0), ("worker-0", 0)),
        end=_end("succeeded"),
    ),
    TFJobCase(
        name="nothing-is-cleaned-up",
        spec=_spec({"cleanPodPolicy": "None"}, PS=_role(), Worker=_role(2)),
        exits=(("worker-0", 0),),
        end=_end("succeeded", running="ps-0 worker-1", ended="worker-0"),
        our_end=_end("succeeded", ended="worker-0"),
        differences={"end": "spec.runPolicy.cleanPodPolicy"},
    ),
    TFJobCase(
        name="clean-up-not-said",
        spec={"tfReplicaSpecs": {"PS": _role(), "Worker": _role(2)}},
        exits=(("worker-0", 0),),
        end=_end("succeeded", running="ps-0 worker-1", ended="worker-0"),
        our_end=_end("succeeded", ended="worker-0"),
        differences={"end": "spec.runPolicy.cleanPodPolicy"},
    ),
    TFJobCase(
        name="gone-when-it-has-ended",
        spec=_spec({"ttlSecondsAfterFinished": 0}, PS=_role(), Worker=_role()),
        exits=(("worker-0", 0),),
        end=_end("gone"),
    ),
    TFJobCase(
        name="gone-a-second-after-it-failed",
        spec=_spec({"ttlSecondsAfterFinished": 1}, PS=_role(), Worker=_role()),
        exits=(("worker-0", 1),),
        end=_end("gone"),
    ),
)

#: What a failure does.
_FAILURES = (
    TFJobCase(
        name="worker-0-fails",
        spec=_spec(PS=_role(), Worker=_role(2)),
        exits=(("worker-0", 1),),
        end=_end("failed", ended="worker-0"),
    ),
    TFJobCase(
        name="another-worker-fails",
        spec=_spec(PS=_role(), Worker=_role(2)),
        exits=(("worker-1", 1),),
        end=_end("failed", ended="worker-1"),
        our_exits=(("worker-0", 0),),
        our_end=_end("succeeded", ended="worker-0 worker-1"),
        differences={"end": "spec.tfReplicaSpecs.Worker.restartPolicy"},
    ),
    TFJobCase(
        name="a-server-fails",
        spec=_spec(PS=_role(2), Worker=_role()),
        exits=(("ps-1", 1),),
        end=_end("failed", ended="ps-1"),
    ),
    TFJobCase(
        name="the-chief-fails",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role()),
        exits=(("chief-0", 1),),
        end=_end("failed", ended="chief-0"),
    ),
    TFJobCase(
        name="the-evaluator-fails",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(), Evaluator=_role()),
        exits=(("evaluator-0", 1),),
        end=_end("failed", ended="evaluator-0"),
        our_exits=(("chief-0", 0),),
        our_end=_end("succeeded", ended="chief-0 evaluator-0"),
        differences={"cluster": "evaluator", "end": "spec.tfReplicaSpecs.Evaluator.restartPolicy"},
    ),
    TFJobCase(
        name="a-worker-comes-back",
        spec=_spec(PS=_role(), Worker=_role(2, "OnFailure")),
        exits=(("worker-1", 1), ("worker-1", 1), ("worker-1", 0), ("worker-0", 0)),
        end=_end("succeeded", ended="worker-0 worker-1"),
    ),
    TFJobCase(
        name="a-server-comes-back",
        spec=_spec(PS=_role(1, "OnFailure"), Worker=_role(1, "OnFailure")),
        exits=(("ps-0", 137), ("ps-0", 0), ("worker-0", 0)),
        end=_end("succeeded", ended="ps-0 worker-0"),
    ),
    TFJobCase(
        name="what-completes-begins-again",
        spec=_spec(Chief=_role(), PS=_role(), Worker=_role(1, "Always")),
        exits=(("worker-0", 0), ("worker-0", 0), ("chief-0", 0)),
        end=_end("succeeded", ended="chief-0"),
        our_end=_end("succeeded", ended="chief-0 worker-0"),
        differences={"end": "attempts"},
    ),
    TFJobCase(
        name="a-code-that-may-pass",
        spec=_spec(PS=_role(), Worker=_role(1, "ExitCode")),
        exits=(("worker-0", 137), ("worker-0", 0)),
        end=_end("succeeded", ended="worker-0"),
    ),
    TFJobCase(
        name="a-code-that-stays",
        spec=_spec(PS=_role(), Worker=_role(1, "ExitCode")),
        exits=(("worker-0", 1),),
        end=_end("failed", ended="worker-0"),
        our_exits=(("worker-0", 0),),
        our_end=_end("succeeded", ended="worker-0"),
        differences={"end": "spec.tfReplicaSpecs.Worker.restartPolicy"},
    ),
    TFJobCase(
        name="as-often-as-the-limit",
        spec=_spec({"backoffLimit": 2}, PS=_role(), Worker=_role(1, "OnFailure")),
        exits=(("worker-0", 1), ("worker-0", 1)),
        end=_end("failed"),
        our_exits=(("worker-0", 1),),
        our_end=_end("failed", ended="worker-0"),
        differences={"end": "spec.runPolicy.backoffLimit"},
    ),
    TFJobCase(
        name="longer-than-its-deadline",
        spec=_spec({"activeDeadlineSeconds": 5}, PS=_role(), Worker=_role()),
        end=_end("failed"),
        is_touched=True,
    ),
    TFJobCase(
        name="suspended",
        spec=_spec({"suspend": True}, PS=_role(), Worker=_role()),
        end=_end("suspended"),
        our_exits=(("worker-0", 0),),
        our_end=_end("succeeded", ended="worker-0"),
        differences={"end": "spec.runPolicy.suspend"},
    ),
)

CASES = (*_GIVEN, *_SUCCESS, *_CLEAN_UP, *_FAILURES)
