"""A folder that goes with its job."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from paceline.agent import unpacking
from paceline.errors import InvalidInput, NotFound
from paceline.model.jobs.code_sources import Code
from paceline.model.jobs.job_specs import JobSpec
from paceline.services import packed_folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "src"
    (made / "pkg" / "__pycache__").mkdir(parents=True)
    (made / ".git").mkdir()
    (made / ".git" / "config").write_text("secret")
    (made / "pkg" / "__pycache__" / "a.pyc").touch()
    (made / "train.py").write_text("print()")
    (made / "pkg" / "run.sh").write_text("#!")
    (made / "pkg" / "run.sh").chmod(0o700)
    (made / "link").symlink_to("pkg/run.sh")
    (made / "below").symlink_to("pkg")
    return made


def test_it_is_unpacked_as_it_was_without_what_tools_keep(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(packed_folders.pack(folder))
    (tmp_path / "code").mkdir()
    unpacking.unpack(tmp_path / "packed", tmp_path / "code")
    found = sorted(str(each.relative_to(tmp_path / "code")) for each in (tmp_path / "code").rglob("*"))
    assert found == ["below", "link", "pkg", "pkg/run.sh", "train.py"]
    assert os.access(tmp_path / "code" / "link", os.X_OK)
    assert os.readlink(tmp_path / "code" / "below") == "pkg"


def test_the_same_content_makes_the_same_bytes(folder: Path) -> None:
    first = packed_folders.pack(folder)
    os.utime(folder / "train.py", (1, 1))
    (folder / "train.py").chmod(0o600)
    assert packed_folders.pack(folder) == first
    (folder / "train.py").write_text("print(1)")
    assert packed_folders.pack(folder) != first


def noise(path: Path, size: int) -> None:
    path.write_bytes(random.Random(1).randbytes(size))


def test_up_to_a_mebibyte_and_not_more(folder: Path) -> None:
    noise(folder / "model.bin", (1 << 20) - 5000)
    assert 1_040_000 < len(packed_folders.pack(folder)) <= 1 << 20
    noise(folder / "model.bin", 1 << 20)
    with pytest.raises(InvalidInput, match=r"packed is the limit; the largest are model\.bin \(1"):
        packed_folders.pack(folder)


def test_what_could_never_become_small_is_not_even_read(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidInput, match=r"unpacked, and .* is the limit; the largest are huge"):
        packed_folders.pack(folder)


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "pkg/../../x"])
def test_links_that_lead_out_are_refused(folder: Path, target: str) -> None:
    (folder / "out").symlink_to(target)
    with pytest.raises(InvalidInput, match=r"src/out: the link leads out of the folder"):
        packed_folders.pack(folder)


def test_other_things_are_refused(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(InvalidInput, match="pipe: this is neither a file nor a folder"):
        packed_folders.pack(folder)
    with pytest.raises(NotFound, match="no such folder of code"):
        packed_folders.pack(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="no file in it"):
        packed_folders.pack(tmp_path / "empty")


def test_it_counts_from_the_job_file(folder: Path, tmp_path: Path) -> None:
    spec = JobSpec(name="clicks", code=Code(folder="../src"))
    (tmp_path / "jobs").mkdir()
    assert packed_folders.of_job(spec, tmp_path / "jobs") == packed_folders.pack(folder)
    assert packed_folders.of_job(JobSpec(name="clicks", code=Code(config_map="x")), tmp_path) is None
