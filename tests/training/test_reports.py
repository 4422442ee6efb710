import json
import logging

from paceline.training import reports
from paceline.training.input.input_costs import Cost


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_nothing_is_written_when_unset():
    reports.ReportWriter.from_environment({}).append({"type": "step"})


def test_lines_are_appended(tmp_path):
    path = tmp_path / "reports"
    for _ in range(2):
        reports.ReportWriter.from_environment({"PACELINE_REPORT_FILE": str(path)}).append(
            {"type": "evaluation"}
        )
    assert [line["type"] for line in lines(path)] == ["evaluation"] * 2
    assert all(line["at"] > 0 for line in lines(path))


def test_a_file_that_cannot_be_written_is_mentioned_once(tmp_path, caplog):
    writer = reports.ReportWriter(str(tmp_path))  # a folder
    with caplog.at_level(logging.WARNING):
        writer.append({"type": "step"})
        writer.append({"type": "step"})
    assert len(caplog.records) == 1


def test_the_meter_reports_sums_of_an_interval(tmp_path):
    path = tmp_path / "reports"
    meter = reports.StepMeter(reports.ReportWriter(str(path)), total_steps=100, every_seconds=1000)
    meter.restart(Cost(2.0, 1.0))
    meter.add(step=11, steps=1, examples=8, loss=0.5, input_cost=Cost(2.25, 1.0), waited_seconds=0.5)
    meter.add(step=13, steps=1, examples=8, loss=0.25, input_cost=Cost(2.5, 1.5), dropped=True)
    meter.flush(Cost(2.5, 1.75))
    meter.flush(Cost(2.5, 1.75))  # nothing since
    (line,) = lines(path)
    assert line["type"] == "step"
    assert (line["step"], line["steps"], line["examples"], line["total_steps"]) == (13, 2, 16, 100)
    assert line["loss"] == 0.375
    assert (line["input_wait_seconds"], line["input_cpu_seconds"]) == (0.5, 0.75)
    assert (line["trainer_wait_seconds"], line["gradients_dropped"]) == (0.5, 1)
    assert line["interval_seconds"] >= 0


def test_the_meter_reports_once_its_interval_is_over(tmp_path):
    path = tmp_path / "reports"
    meter = reports.StepMeter(reports.ReportWriter(str(path)), total_steps=100, every_seconds=0)
    for step in (1, 2):
        meter.add(step, 1, 1, 0.0, Cost())
    assert [line["step"] for line in lines(path)] == [1, 2]
