import hashlib
from pathlib import Path

import pytest
import yaml

from examples.census import data, train
from paceline.training import errors, settings
from paceline.training.input import inputs, sources

JOB = yaml.safe_load((Path(data.__file__).with_name("job.yaml")).read_text())
ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, 40, Cuba, {}"
)


def test_the_published_files_are_read_whole(census_data):
    train_source, test_source = data.sources(census_data)
    assert sources.count(train_source) == 32_561
    assert sources.count(test_source) == 16_281
    positives = [
        sum(float(chunk.labels.sum()) for chunk in inputs.once(source, train.MODEL.features))
        for source in (train_source, test_source)
    ]
    assert positives == [7841, 3846]  # as adult.names says: 24.08 % and 23.62 %


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive of tiny files whose checksums are accepted."""
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "adult.data").write_text(ROW.format(">50K") + "\n")
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + ROW.format("<=50K.") + "\n\n")
    monkeypatch.setattr(data, "ARCHIVE", folder.as_uri() + "/")
    digests = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}
    monkeypatch.setattr(data, "CHECKSUMS", digests)
    return folder


def test_files_are_downloaded_once(archive, tmp_path):
    folder = tmp_path / "census" / "data"
    train_source, test_source = data.sources(folder)
    (first,) = inputs.once(train_source, train.MODEL.features)
    (second,) = inputs.once(test_source, train.MODEL.features)
    assert (first.labels.tolist(), second.labels.tolist()) == ([1.0], [0.0])
    assert first.ids[0].tolist() == second.ids[0].tolist()
    (archive / "adult.data").unlink()
    data.sources(folder)
    assert sorted(each.name for each in folder.iterdir()) == ["adult.data", "adult.test"]


def test_a_file_that_is_not_the_published_one_is_refused(archive, tmp_path):
    (archive / "adult.data").write_text("something else\n")
    with pytest.raises(errors.InputError, match=r"adult\.data: this is not UCI's adult\.data"):
        data.sources(tmp_path / "census")
    assert not (tmp_path / "census" / "adult.data").exists()


def test_without_a_network_the_error_says_what_to_do(archive, tmp_path):
    (archive / "adult.data").unlink()
    with pytest.raises(errors.InputError, match=r"cannot be downloaded \((.|\n)*put the file there by hand"):
        data.sources(tmp_path / "census")


def test_the_job_files_settings_are_valid():
    assert settings.parse(JOB["spec"]["training"]).batch_size == 128


@pytest.mark.slow
@pytest.mark.nightly
def test_two_and_two_reach_the_promised_quality(job, census_data):
    command = ["-m", "examples.census.train", "--data", str(census_data)]
    processes = job(command, JOB["spec"]["training"], ps=2, worker=2)
    processes.start_all()
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    (evaluation,) = processes.reports("worker", 0, "evaluation")
    assert evaluation["examples"] == 16_281
    assert evaluation["auc"] >= 0.905
    assert evaluation["accuracy"] >= 0.85
