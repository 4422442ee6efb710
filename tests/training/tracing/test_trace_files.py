"""Traces on disk: whole, and not without end."""

from paceline.model.traces import traced_steps
from paceline.training.tracing import trace_files


def test_only_the_newest_of_a_trainer_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_files, "KEPT", 3)
    mine, other = "worker-0.1.parquet", "worker-1.1.parquet"
    names = [traced_steps.name_at(at) for at in range(5)]
    for name in names:
        trace_files.write(traced_steps.Trace(trainer="worker-0", attempt=1, at=1.0), tmp_path / name / mine)
    trace_files.write(traced_steps.Trace(trainer="worker-1", attempt=1, at=1.0), tmp_path / names[0] / other)
    trace_files.prune(tmp_path, "worker-0", 1)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == [f"{names[0]}/{other}", *(f"{name}/{mine}" for name in names[2:])]
    assert not (tmp_path / names[1]).exists()


def test_traces_of_all_attempts_count_and_a_killed_writer_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_files, "KEPT", 3)
    names = [traced_steps.name_at(at) for at in range(5)]
    for attempt, name in enumerate(names, start=1):
        if attempt > 1:
            (tmp_path / names[0] / ".worker-1.1.parquet.tmp").touch()
            (tmp_path / names[0] / f".worker-0.{attempt}.parquet.tmp").touch()
            (tmp_path / names[2]).mkdir(exist_ok=True)
            (tmp_path / names[2] / ".worker-0.1.parquet.tmp").touch()
        trace = traced_steps.Trace(trainer="worker-0", attempt=attempt, at=1.0)
        trace_files.keep(trace, tmp_path, name)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == [
        f"{names[0]}/.worker-0.5.parquet.tmp", f"{names[0]}/.worker-1.1.parquet.tmp",
        *(f"{names[at]}/worker-0.{at + 1}.parquet" for at in (2, 3, 4)),
    ]  # fmt: skip
