"""The same values are the same ids, numbers and labels in every format, or the same refusal and place."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.training import errors, features
from paceline.training.input import inputs, sources

ENCODER = features.FeatureSet(
    numeric=(features.Numeric("x", mean=1.0, deviation=2.0), features.Numeric("z", log=True)),
    categorical=(
        features.Bucketised("x", (-1.0, 0.0, 10.0)),
        features.Hashed("w", 50),
        features.Vocabulary("v", ("a", "NA", "b c")),
        features.Identity("i", 9),
        features.Cross((features.Hashed("w", 50), features.Identity("i", 9)), 40),
    ),
    label=features.Label("y"),
)
#: All of them are the same in 32 bits.
NUMBERS = (
    st.none() | st.sampled_from([0.0, -1.5, 3.25, 2.0**120, -(2.0**99)]) | st.integers(-9, 99).map(float)
)
TEXTS = st.none() | st.sampled_from(
    ["", " ", "a", " a", "b c", "NA", "null", "nan", "é", 'say "no"', "two\nlines", "x,y", "end\r\n", "\tt"]
)
INTEGERS = st.none() | st.integers(-2, 12) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
ROW = st.fixed_dictionaries(
    {
        "x": NUMBERS,
        "z": NUMBERS,
        "w": TEXTS,
        "v": TEXTS,
        "i": INTEGERS,
        "y": st.integers(-1, 2).map(float),
    }
)
WHOLE = {"x": 0.0, "z": 0.0, "w": "a", "v": "a", "i": 0, "y": 1.0}
FAULTS = st.sampled_from([None, None, None, ("y", None), ("x", math.inf), ("z", -math.inf)])


def to_csv(path: Path, rows: list[dict[str, object]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(ENCODER.kinds()), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def to_parquet(path: Path, rows: list[dict[str, object]]) -> str:
    types = {"number": pa.float64(), "integer": pa.int64(), "string": pa.string()}
    schema = pa.schema([(name, types[str(kind)]) for name, kind in ENCODER.kinds().items()])
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), path)
    return str(path)


def to_records(path: Path, rows: list[dict[str, object]]) -> str:
    import tensorflow as tf

    def feature(kind: object, value: object) -> object:
        if kind == "string":
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[str(value).encode()]))
        if kind == "integer":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            stored = {
                name: feature(kind, row[name])
                for name, kind in ENCODER.kinds().items()
                if row[name] is not None
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=stored)).SerializeToString())
    return str(path)


def outcome(path: str) -> list[object] | tuple[str, str]:
    """All that is read of a file; or where it was refused, and why."""
    source = sources.Source((path,))
    try:
        assert sources.count(source)
        chunks = list(inputs.once(source, ENCODER))
    except errors.InputError as error:
        place, _, why = str(error).partition(": column ")
        return place, why
    return [(each.numeric.tolist(), each.ids.tolist(), each.labels.tolist()) for each in chunks]


@pytest.mark.slow
@settings(max_examples=examples(2_000, one_in=20))
@given(rows=st.lists(ROW, max_size=8), fault=FAULTS, at=st.integers(0, 7))
def test_values_do_not_depend_on_the_format(tmp_path_factory, rows, fault, at):
    folder = tmp_path_factory.mktemp("formats")
    rows = [WHOLE, *rows]
    if fault is None:
        found = outcome(to_csv(folder / "a.csv", rows))
        assert isinstance(found, list)
        assert outcome(to_parquet(folder / "a.parquet", rows)) == found
        assert outcome(to_records(folder / "a.tfrecord", rows)) == found
        return
    before = rows[: at + 1]
    lines = Path(to_csv(folder / "before.csv", before)).read_bytes().splitlines()
    rows = [*before, {**WHOLE, fault[0]: fault[1]}, *rows[at + 1 :]]
    place, why = outcome(to_csv(folder / "a.csv", rows))
    assert place == f"{folder}/a.csv:{len(lines) + 1}"
    assert outcome(to_parquet(folder / "a.parquet", rows)) == (
        f"{folder}/a.parquet: row {len(before) + 1}", why
    )  # fmt: skip
    assert outcome(to_records(folder / "a.tfrecord", rows)) == (
        f"{folder}/a.tfrecord: record {len(before) + 1}", why
    )  # fmt: skip
