"""Scripts of PyTorch are seen as they are, and do what they did."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import types

import pytest
from support import interpreters, kills, ports
from support.styles import SCRIPTS

from paceline.instrumentation.paceline_instrumentation import guarding, reporting, torches

pytestmark = pytest.mark.slow
SCRIPT = str(SCRIPTS / "torch_ddp.py")
ALL_REDUCE = str(SCRIPTS.parent / "torch_all_reduce.py")
_PRINTED = re.compile(r"^step (\d+) examples (\d+) loss (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def python() -> str:
    return str(interpreters.with_torch_or_skip())


@pytest.fixture
def ranks(runner, python):
    """Starts ranks, each with a report file of its own."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str, script: str = SCRIPT, world: int = 2, **more: str):
            port = ports.free_port()
            processes = []
            for rank in range(world):
                folder = runner.folder / f"rank-{rank}"
                folder.mkdir(exist_ok=True)
                environment = runner.environment(
                    RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                    MASTER_PORT=str(port), OMP_NUM_THREADS="1", PACELINE_INDEX=str(rank),
                    PACELINE_REPORT_FILE=str(folder / "reports.jsonl"), **more,
                )  # fmt: skip
                with (folder / "printed").open("w") as out, (folder / "errors").open("w") as errors:
                    process = subprocess.Popen(
                        [python, script, *arguments], env=environment, stdout=out, stderr=errors
                    )
                stack.callback(process.wait)
                stack.callback(process.kill)
                processes.append(process)
            return processes

        yield start


def reports(runner, rank: int, kind: str = "step") -> list[dict]:
    path = runner.folder / f"rank-{rank}" / "reports.jsonl"
    text = path.read_text() if path.exists() else ""
    # The last line may be on its way.
    return [line for line in map(json.loads, re.findall(r"[^\n]*\n", text)) if line["type"] == kind]


def printed(runner, rank: int) -> str:
    return (runner.folder / f"rank-{rank}" / "printed").read_text()


def end(processes, runner) -> None:
    for rank, process in enumerate(processes):
        assert process.wait(600) == 0, (runner.folder / f"rank-{rank}" / "errors").read_text()


def test_what_is_seen_of_ranks_is_what_they_print_and_changes_nothing(runner, ranks):
    arguments = ("--steps=200", "--pause=0.01", "--evaluate", "--examples=500")
    end(ranks(*arguments), runner)
    seen = [printed(runner, rank) for rank in range(2)]
    for rank in range(2):
        lines = _PRINTED.findall(seen[rank])
        assert [int(step) for step, _, _ in lines] == list(range(1, 201))
        own = reports(runner, rank)
        assert sum(each["steps"] for each in own) == 200
        assert own[-1]["step"] == 200
        # The last batch of a pass is smaller; those of an evaluation are not counted.
        assert sum(each["examples"] for each in own) == int(lines[-1][1]) < 200 * 32
        losses = {loss for _, _, loss in lines}
        assert {repr(each["loss"]) for each in own} <= losses
        for each in own:
            assert 0 <= each["input_wait_seconds"] <= each["interval_seconds"]
            assert each["all_reduce_seconds"] >= 0
        assert sum(each["all_reduce_seconds"] for each in own) > 0
        said = [each["message"] for each in reports(runner, rank, "instrumentation")]
        assert said[0].startswith("PyTorch ")
        assert said[1:] == [
            "its steps, made by Adam; batches of 32 of a DataLoader with 0 workers; gradients: all-reduced "
            "by DistributedDataParallel"
        ]

    end(ranks(*arguments, PACELINE_INSTRUMENTATION="off"), runner)
    for rank in range(2):
        alone = printed(runner, rank).splitlines()
        assert [line for line in alone if "rate" not in line] == [
            line for line in seen[rank].splitlines() if "rate" not in line
        ], "to the last digit"


@pytest.mark.parametrize(
    ("state", "before", "said"),
    [
        ({"weights": {"step": 1201}}, 1200, ""),
        ({"weights": {"step": 1}}, 0, ""),
        ({"weights": {"momentum_buffer": None}}, 0, "; global step: not seen"),
        ({}, 0, "; global step: not seen"),
    ],
    ids=["resumed", "new", "momentum", "SGD"],
)
def test_an_optimizer_that_keeps_no_step_does_not_say_where_training_began(
    runner, monkeypatch, state, before, said
):
    reporter = reporting.Reporter(str(runner.reports_file))
    watch = torches.TorchWatch(reporter, guarding.Guard(reporter))
    monkeypatch.setattr(torches.threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(torches.atexit, "register", lambda *arguments: None)
    watch._begin(types.SimpleNamespace(state=state))
    assert watch._total == before
    (message,) = [each["message"] for each in runner.reports("instrumentation")]
    assert message == f"its steps, made by SimpleNamespace; batches: not seen; gradients: its own{said}"


@pytest.mark.nightly
def test_the_late_rank_waits_least_in_all_reduce(runner, ranks):
    end(ranks("--steps=150", "--slow-rank=1", "--slow-rounds=60", world=3), runner)
    waited = [sum(each["all_reduce_seconds"] for each in reports(runner, rank)) for rank in range(3)]
    assert waited[1] < min(waited[0], waited[2])


def test_batches_that_are_waited_for(runner, ranks):
    """A batch takes at least 0.2 s by itself, so that much of each step at least is waited for."""
    end(ranks("--steps=10", "--read=0.2", "--batch=8", world=1), runner)
    own = reports(runner, 0)
    assert sum(each["input_wait_seconds"] for each in own) >= 10 * 0.2
    assert all(each["all_reduce_seconds"] is None for each in own), "there is no other rank"


def test_workers_of_a_loader_report_nothing(runner, ranks):
    end(ranks("--steps=40", "--workers=2", world=1), runner)
    own = reports(runner, 0)
    assert sum(each["steps"] for each in own) == 40
    assert sum(each["examples"] for each in own) == int(_PRINTED.findall(printed(runner, 0))[-1][1])
    said = [each["message"] for each in reports(runner, 0, "instrumentation")]
    assert any("with 2 workers" in each for each in said)


def test_a_rank_that_does_not_come_is_told_from_those_that_wait(runner, ranks):
    ranks("--steps=1000000", "--stop-rank=1", "--stop-step=20", world=3)

    def waited(rank: int) -> float | None:
        still = [each for each in reports(runner, rank) if each["steps"] == 0]
        if len(still) < 2:
            return None
        return still[-1]["all_reduce_seconds"] / still[-1]["interval_seconds"]

    def all_waited() -> list[float] | None:
        shares = [waited(rank) for rank in range(3)]
        return None if None in shares else shares

    found = kills.until(all_waited, seconds=300, every_seconds=0.5)
    assert found[1] < 0.1, found
    assert min(found[0], found[2]) > 0.9, found
    assert sum(each["steps"] for each in reports(runner, 1)) == 20


@pytest.mark.nightly
def test_a_rank_that_came_late_once_is_waited_for_once(runner, ranks):
    """Its wait is reported while it lasts, and never as more than all of the time."""
    end(ranks("--steps=100", "--pause=0.1", "--stop-rank=1", "--stop-step=20", "--stop-seconds=15"), runner)
    own = reports(runner, 0)
    assert sum(each["steps"] for each in own) == 100
    assert any(each["steps"] == 0 and each["all_reduce_seconds"] > 0 for each in own)
    assert all(each["all_reduce_seconds"] <= each["interval_seconds"] for each in own)
    assert sum(each["all_reduce_seconds"] for each in own) > 5
    # Afterwards it is measured as before.
    after = own[max(number for number, each in enumerate(own) if each["steps"] == 0) + 1 :]
    assert any(each["all_reduce_seconds"] < each["interval_seconds"] for each in after)


def test_gradients_that_a_script_reduces_itself(runner, ranks):
    end(ranks(script=ALL_REDUCE, world=2), runner)
    for rank in range(2):
        own = reports(runner, rank)
        assert sum(each["steps"] for each in own) == 100
        assert {each["examples"] for each in own} == {None}, "it has no DataLoader"
        assert {each["input_wait_seconds"] for each in own} == {None}
        assert sum(each["all_reduce_seconds"] for each in own) > 0
        (_, said) = reports(runner, rank, "instrumentation")
        assert (
            said["message"] == "its steps, made by SGD; batches: not seen; gradients: all-reduced by itself; "
            "global step: not seen"
        )


BEGIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
rows = TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
model = torch.nn.Linear(3, 1)
def loss(batch):
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])
"""
ACCUMULATED = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for number, batch in enumerate(DataLoader(rows, 10), 1):
    loss(batch).backward()
    if number % 5 == 0:
        optimizer.step()
"""
#: Both classes have the hook of their step, and one calls the other.
INHERITED = """
class Own(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
torch.optim.SGD(model.parameters(), 0.1)
optimizer = Own(model.parameters(), 0.1)
for batch in DataLoader(rows, 10):
    loss(batch).backward()
    optimizer.step()
"""
TWO = """
other = torch.nn.Linear(3, 1)
first, second = torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(other.parameters(), 0.1)
for batch in DataLoader(rows, 10):
    loss(batch).backward()
    first.step()
    other(batch[0]).sum().backward()
    second.step()
"""
#: As scripts evaluate that do without ``no_grad``: batches of which no gradients are made are not trained.
EVALUATED = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(rows, 10):
    loss(batch).backward()
    optimizer.step()
for batch in DataLoader(rows, 50):
    loss(batch)
"""
CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(rows, 10):
    value = torch.nn.functional.mse_loss(checkpoint(model, batch[0].requires_grad_()), batch[1])
    value.backward()
    optimizer.step()
"""
#: A batch that is a dictionary, made of a sampler's own batches.
DICTIONARIES = """
class Named(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return {"name": str(index), "rows": rows[index]}
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(Named(), 10):
    loss(batch["rows"]).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("code", "steps", "examples"),
    [
        (ACCUMULATED, 2, 100), (INHERITED, 10, 100), (TWO, 10, 100), (EVALUATED, 10, 100),
        (CHECKPOINTED, 10, 100), (DICTIONARIES, 10, 100),
    ],
    ids=["accumulated", "inherited", "two", "evaluated", "checkpointed", "dictionaries"],
)  # fmt: skip
def test_steps_are_counted_once_and_examples_that_were_trained(runner, python, code, steps, examples):
    done = runner.code(BEGIN + code, python=python)
    assert done.returncode == 0, done.stderr
    own = runner.reports("step")
    assert sum(each["steps"] for each in own) == steps
    assert sum(each["examples"] for each in own) == examples
    assert not [each for each in runner.reports("instrumentation") if "error" in each["message"]]


RESTORED = """
optimizer = torch.optim.Adam(model.parameters(), 0.1)
if FIRST:
    for batch in DataLoader(rows, 10):
        loss(batch).backward()
        optimizer.step()
    torch.save(optimizer.state_dict(), "saved")
else:
    optimizer.load_state_dict(torch.load("saved"))
    loss(next(iter(DataLoader(rows, 10)))).backward()
    optimizer.step()
"""


@pytest.mark.nightly
def test_a_script_that_goes_on_counts_from_where_it_was(runner, python):
    for first in (True, False):
        done = runner.code(f"FIRST = {first}" + BEGIN + RESTORED, python=python)
        assert done.returncode == 0, done.stderr
    assert [each["step"] for each in runner.reports("step")] == [10, 11]


def test_a_script_that_reports_by_itself_is_left_alone(runner, python):
    own = "import sys, types; sys.modules['paceline.training.reports'] = types.ModuleType('reports')\n"
    done = runner.code(own + BEGIN + ACCUMULATED, python=python)
    assert done.returncode == 0, done.stderr
    assert runner.reports("step") == []


RAISES = """
def loss(batch):
    raise ValueError("of the script")
for batch in DataLoader(rows, 10):
    torch.optim.SGD(model.parameters(), 0.1).step(lambda: loss(batch))
"""


def test_an_error_of_the_script_is_printed_as_it_would_be(runner, python):
    seen = runner.code(BEGIN + RAISES, python=python)
    alone = runner.code(
        BEGIN + RAISES, python=python, environment=runner.environment(PACELINE_INSTRUMENTATION="off")
    )
    assert seen.returncode == alone.returncode == 1
    assert seen.stderr == alone.stderr
    assert seen.stderr.endswith("ValueError: of the script\n")


def test_without_pytorch_nothing_of_it_is_loaded(runner):
    done = runner.code("import sys; print([name for name in sys.modules if 'torches' in name])")
    assert (done.stdout, done.returncode) == ("[]\n", 0)


def test_a_function_with_other_arguments_is_left_alone(tmp_path, monkeypatch):
    # Another test of this process may have loaded it; a script that has it reports by itself.
    monkeypatch.delitem(sys.modules, "paceline.training.reports", raising=False)
    module = types.ModuleType("torch.autograd")

    def backward(graph):
        return graph

    module.backward = backward
    torches.TorchInstrument({"PACELINE_REPORT_FILE": str(tmp_path / "reports.jsonl")}).patch(module)
    assert module.backward is backward
    (line,) = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert "torch.autograd cannot be looked into" in json.loads(line)["message"]
