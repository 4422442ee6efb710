import json

import pytest

from paceline.model.variables import consistencies, saved_plans, schedules, variable_plans
from paceline.model.variables.variables import Variable
from paceline.training import errors, settings

PLAN = variable_plans.plan(
    [Variable(name="table", shape=(100, 4), sparse=True)],
    servers=2,
    cut=variable_plans.RowPartitioning(min_shard_bytes=1),
    rule=variable_plans.PlacementRule.BALANCED,
)
PLAIN = saved_plans.write(PLAN)


def test_defaults():
    chosen = settings.read({})
    assert chosen.optimizer == settings.Optimizer("adagrad", 0.05)
    assert chosen.wide_optimizer == settings.Optimizer("ftrl", 0.05)
    assert (chosen.batch_size, chosen.epochs, chosen.embedding_dimension) == (512, 1, 16)
    assert chosen.hidden_units == (256, 128, 64)
    assert chosen.partitioning == settings.PartitioningSettings("min-size", "hashed", None, None)
    assert chosen.variable_placement == variable_plans.DEFAULT_RULE.value
    assert chosen.variable_plan is None
    assert chosen.fused_tables
    assert chosen.checkpoint == settings.Checkpoint(60, 3)
    assert chosen.trace == settings.TraceSettings(60, 2)
    assert chosen.inputs == settings.Inputs()
    assert (chosen.seed, chosen.max_steps) == (0, None)


def test_every_key_can_be_set():
    raw = {
        "optimizer": {
            "name": "adam",
            "learning_rate": 1,
            "schedule": {
                "decay": "polynomial",
                "warmup_steps": 5,
                "decay_steps": 9,
                "end_factor": 1,
                "power": 2,
            },
        },
        "wide_optimizer": {"learning_rate": 0.5},
        "clip_norm": 5,
        "batch_size": 32,
        "epochs": 2,
        "embedding_dimension": 4,
        "hidden_units": [8],
        "partitioning": {"strategy": "min-size", "rows": "hashed", "shards": 3, "min_shard_bytes": 10},
        "variable_placement": "greedy",
        "variable_plan": PLAIN,
        "fused_tables": False,
        "compute_precision": "bfloat16",
        "transfers": {"packed": False, "precision": "bfloat16"},
        "steps_per_exchange": 4,
        "steps_in_flight": 2,
        "consistency": {"mode": "bounded-staleness", "staleness": 3},
        "checkpoint": {"every_seconds": 0.5, "keep": 1},
        "export_dir": "exported",
        "trace": {"every_seconds": 0, "steps": 3},
        "inputs": {
            "train": "a.csv",
            "evaluation": ["b", "c"],
            "format": "csv",
            "threads": 3,
            "cache": {"folder": "/tmp/cache", "max_bytes": 10},
        },
        "seed": 7,
        "max_steps": 9,
    }
    chosen = settings.read({"PACELINE_TRAINING": json.dumps(raw)})
    schedule = schedules.LearningRateSchedule("polynomial", 5, 9, 1.0, 2.0)
    assert chosen.optimizer == settings.Optimizer("adam", 1.0, schedule)
    assert chosen.wide_optimizer == settings.Optimizer("ftrl", 0.5)  # the default of this very block
    assert chosen.inputs == settings.Inputs(
        ("a.csv",), ("b", "c"), "csv", 3, settings.InputCache("/tmp/cache", 10)
    )
    assert chosen.partitioning == settings.PartitioningSettings("min-size", "hashed", 3, 10)
    assert chosen.variable_plan == PLAN
    assert not chosen.fused_tables
    assert chosen.compute_precision == "bfloat16"
    assert chosen.transfers == settings.Transfers(packed=False, precision="bfloat16")
    assert chosen.steps_per_exchange == 4
    assert chosen.steps_in_flight == 2
    assert chosen.consistency == consistencies.Consistency("bounded-staleness", 3)
    assert chosen.clip_norm == 5.0
    assert chosen.export_dir == "exported"
    assert chosen.max_steps == 9
    assert chosen.trace == settings.TraceSettings(0, 3)
    assert settings.parse({"max_steps": None, "partitioning": {"shards": None}}) == settings.Settings()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], r"training: expected a block of keys, got \[\]"),
        ({"batch_sise": 1}, "training: unknown key 'batch_sise'; did you mean 'batch_size'"),
        ({"optimizer": {"nmae": "adam"}}, "training.optimizer: unknown key 'nmae'; did you mean 'name'"),
        (
            {"optimizer": {"name": "adma"}},
            "training.optimizer.name: 'adma' is not allowed; did you mean 'adam'",
        ),
        ({"optimizer": "adam"}, "training.optimizer: expected a block"),
        ({"checkpoint": {"keep": -1}}, "training.checkpoint.keep: must be at least 0, got -1"),
        ({"checkpoint": {"keep": 0}, "export_dir": "x"}, "training: export_dir needs a checkpoint"),
        ({"checkpoint": {"keep": 0, "mirror": "x"}}, "training: checkpoint.mirror needs checkpoints"),
        ({"checkpoint": {"keep": 0, "restore_from": "x"}}, "training: checkpoint.restore_from needs a place"),
        ({"batch_size": "32"}, "training.batch_size: expected a whole number, got '32'"),
        ({"batch_size": True}, "expected a whole number, got True"),
        ({"batch_size": 1.5}, "expected a whole number"),
        ({"batch_size": 0}, "must be at least 1, got 0"),
        ({"epochs": "x"}, "expected a number"),
        ({"epochs": 0}, "must be above 0"),
        ({"fused_tables": 1}, "expected true or false, got 1"),
        ({"hidden_units": 8}, "expected a list, got 8"),
        ({"hidden_units": [8, "a"]}, r"training.hidden_units\[1\]: expected a whole number"),
        ({"hidden_units": [8, 0]}, "must be at least 1"),
        ({"inputs": {"format": "orc"}}, "training.inputs.format: 'orc' is not allowed"),
        ({"variable_plan": "plan.json"}, "training.variable_plan: the plan: a mapping is wanted"),
        ({"variable_plan": {**PLAIN, "servers": 0}}, "training.variable_plan: servers: a whole number"),
        (
            {"optimizer": {"schedule": {"decay": "cosine"}}},
            "training.optimizer.schedule: .* needs decay_steps",
        ),
        (
            {"wide_optimizer": {"schedule": {"warmup_steps": 9}}},
            "training.wide_optimizer: ftrl .*use adagrad",
        ),
        ({"optimizer": {"schedule": {"end_factor": 2}}}, "end_factor: must be at most 1, got 2"),
        ({"consistency": {"staleness": 1}}, "training.consistency: staleness belongs to the mode"),
        ({"consistency": {"mode": "bounded-staleness"}}, "training.consistency: .* needs staleness"),
        ({"batch_size": None}, "expected a whole number, got None"),
    ],
)
def test_a_wrong_setting_names_its_place(raw, message):
    with pytest.raises(errors.SettingsError, match=message):
        settings.parse(raw)


def test_text_that_is_not_json():
    with pytest.raises(errors.SettingsError, match="PACELINE_TRAINING is not JSON"):
        settings.read({"PACELINE_TRAINING": "batch_size: 3"})
