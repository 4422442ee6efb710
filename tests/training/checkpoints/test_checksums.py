import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import errors

pytestmark = pytest.mark.slow  # imports TensorFlow

NAME = "model.ckpt-7"
FILES = (".index", ".data-00000-of-00002", ".data-00001-of-00002")


@pytest.fixture
def checkpoint(tmp_path):
    """Three files with their checksums; their common start is returned."""
    from paceline.training.checkpoints import checksums

    prefix = str(tmp_path / NAME)
    paths = [prefix + suffix for suffix in FILES]
    for number, path in enumerate(paths):
        with open(path, "wb") as file:
            file.write(bytes(range(100)) * (number + 1))
    (tmp_path / f"{NAME}{checksums.SUFFIX}").write_text(checksums.render(checksums.measure(paths)))
    return prefix


def test_what_was_written_passes(checkpoint):
    from paceline.training.checkpoints import checksums

    checksums.check(checkpoint)


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("damage", ["truncated", "longer", "flipped", "missing"])
def test_a_damaged_file_is_named(checkpoint, suffix, damage):
    from paceline.training.checkpoints import checksums

    path = checkpoint + suffix
    with open(path, "rb") as file:
        content = bytearray(file.read())
    if damage == "missing":
        os.remove(path)
    else:
        content[50] ^= damage == "flipped"
        with open(path, "wb") as file:
            file.write(content[:-1] if damage == "truncated" else content + b"x" * (damage == "longer"))
    reason = {"missing": "is missing", "flipped": "has the CRC-32"}.get(damage, "bytes, but")
    with pytest.raises(errors.DamagedError, match=rf"{suffix} {reason}|{suffix} has \d+ {reason}"):
        checksums.check(checkpoint)


def test_without_a_checksum_file_it_passes_with_a_message(tmp_path, caplog):
    from paceline.training.checkpoints import checksums

    caplog.set_level("INFO")
    checksums.check(str(tmp_path / NAME))
    assert "only TensorFlow's own checks" in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        "../model.ckpt-7.index",
        "/etc/passwd",
        "model.ckpt-7.index/../../x",
        "model.ckpt-77.index",
        "model.ckpt-7.data-0-of-1",
        "model.ckpt-7.index\n",
        "",
    ],
)
def test_names_of_other_files_are_refused(name):
    from paceline.training.checkpoints import checksums

    good = {"bytes": 1, "crc32": "00000000"}
    raw = {"files": {f"{NAME}{FILES[0]}": good, f"{NAME}{FILES[1]}": good, name: good}}
    with pytest.raises(ValueError, match="which is no file of"):
        checksums.parse(json.dumps(raw), NAME)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"files": 1}',
        '{"files": {}}',
        '{"files": {"model.ckpt-7.index": {"bytes": 1, "crc32": "00000000"}}}',
        '{"files": {"model.ckpt-7.index": {"bytes": -1, "crc32": "00000000"}}}',
        '{"files": {"model.ckpt-7.index": {"bytes": true, "crc32": "00000000"}}}',
        '{"files": {"model.ckpt-7.index": {"bytes": 1, "crc32": "0"}}}',
        '{"files": {"model.ckpt-7.index": {"bytes": 1}}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_checksum_file_is_refused(text):
    from paceline.training.checkpoints import checksums

    with pytest.raises(ValueError, match=r"^it "):
        checksums.parse(text, NAME)


def checksum():
    return st.tuples(st.integers(0, 2**63), st.integers(0, 2**32 - 1))


@given(checksum(), st.lists(checksum(), min_size=1, max_size=5))
def test_a_checksum_file_is_read_as_it_was_written(index, data):
    from paceline.training.checkpoints import checksums

    every = {f"{NAME}.index": checksums.Checksum(*index)} | {
        f"{NAME}.data-{i:05d}-of-{len(data):05d}": checksums.Checksum(*each) for i, each in enumerate(data)
    }
    assert checksums.parse(checksums.render(every), NAME) == every


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=8,
)


@given(st.text() | VALUES.map(json.dumps) | VALUES.map(lambda value: json.dumps({"files": value})))
def test_any_other_text_is_refused_or_names_files_of_the_checkpoint_alone(text):
    from paceline.training.checkpoints import checksums

    try:
        found = checksums.parse(text, NAME)
    except ValueError:
        return
    assert all(name.startswith(f"{NAME}.") and "/" not in name for name in found)
