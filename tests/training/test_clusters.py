import json

import pytest

from paceline.training import clusters, errors


def environment(cluster, role, index, **more):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}), **more}


TWO_AND_TWO = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}
WITH_CHIEF = {"ps": ["a:1"], "chief": ["b:1"], "worker": ["c:1", "d:1"]}


def test_worker_zero_is_chief_without_a_chief_role():
    first, second = (clusters.read(environment(TWO_AND_TWO, "worker", i)) for i in range(2))
    assert first.is_chief
    assert not second.is_chief
    assert (second.trainer_index, len(second.trainers)) == (1, 2)
    assert second.task_device == "/job:worker/task:1"
    assert not second.is_local


def test_a_chief_is_the_first_trainer():
    chief = clusters.read(environment(WITH_CHIEF, "chief", 0))
    worker = clusters.read(environment(WITH_CHIEF, "worker", 0))
    assert chief.is_chief
    assert chief.trainer_index == 0
    assert not worker.is_chief
    assert worker.trainer_index == 1


def test_parameter_servers_and_evaluators_are_no_trainers():
    ps = clusters.read(environment(TWO_AND_TWO, "ps", 1))
    evaluator = clusters.read(environment(TWO_AND_TWO, "evaluator", 0))
    assert not ps.is_chief
    assert evaluator.is_local
    with pytest.raises(errors.ClusterTaskError, match="not a trainer"):
        _ = ps.trainer_index


def test_a_single_process_needs_no_parameter_server():
    alone = clusters.read(environment({"worker": ["localhost:0"]}, "worker", 0))
    assert alone.is_chief
    assert alone.is_local
    assert alone.task_device == ""


def test_figures_of_the_agent():
    cluster = clusters.read(environment(TWO_AND_TWO, "ps", 0, PACELINE_ATTEMPT="3", PACELINE_THREADS="2"))
    assert (cluster.attempt, cluster.threads) == (3, 2)
    cluster = clusters.read(environment(TWO_AND_TWO, "ps", 0))
    assert (cluster.attempt, cluster.threads) == (1, None)


def test_without_tf_config_the_error_says_how_to_run():
    with pytest.raises(errors.ClusterTaskError, match=r"job file(.|\n)*export TF_CONFIG="):
        clusters.read({})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"TF_CONFIG": "{"}, "must look like"),
        ({"TF_CONFIG": "[]"}, "must look like"),
        ({"TF_CONFIG": '{"cluster": {}}'}, "must look like"),
        (environment({"wroker": ["a:1"]}, "worker", 0), "did you mean 'worker'"),
        (environment(TWO_AND_TWO, "worker", 2), "has 2 of them"),
        (environment({"worker": ["a:1", "b:1"]}, "worker", 0), "need at least one ps"),
        (environment({"ps": ["a:1"]}, "ps", 0), "no replica would train"),
        (environment({"chief": ["a:1", "b:1"], "ps": ["c:1"]}, "chief", 0), "more than one chief"),
        (environment(TWO_AND_TWO, "ps", 0, PACELINE_ATTEMPT="x"), "PACELINE_ATTEMPT"),
    ],
)
def test_a_wrong_cluster_is_explained(given, message):
    with pytest.raises(errors.ClusterTaskError, match=message):
        clusters.read(given)


def test_places_for_trainers_stay_the_same_however_many_there_are():
    spare = {"PACELINE_SPARE_WORKERS": "e:1,f:1"}
    before = clusters.read(environment(TWO_AND_TWO, "ps", 0, **spare))
    more = {**TWO_AND_TWO, "worker": ["c:1", "d:1", "e:1"]}
    after = clusters.read(environment(more, "worker", 2, PACELINE_SPARE_WORKERS="f:1"))
    assert before.most_trainers == after.most_trainers == 4
    assert (len(before.trainers), after.trainer_index) == (2, 2)
    assert clusters.read(environment(TWO_AND_TWO, "ps", 0)).most_trainers == 2
