"""TFRecord files of tf.train.Example, whole, gzipped and damaged."""

import gzip

import pytest

from paceline.training import errors, features, inputs, sources

pytestmark = pytest.mark.slow

ENCODER = features.FeatureSet(
    (features.Numeric("x"),), (features.Hashed("w", 50), features.Identity("i", 9)), features.Label("y")
)


def example(x=None, w=None, y=1, i=2):
    import tensorflow as tf

    found = {"y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y]))}
    if x is not None:
        found["x"] = tf.train.Feature(float_list=tf.train.FloatList(value=[x]))
    if w is not None:
        found["w"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[w.encode()]))
    if i is not None:
        found["i"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
    return tf.train.Example(features=tf.train.Features(feature=found)).SerializeToString()


def written(path, records, compression=""):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def read(path, **options):
    source = sources.Source((path,), **options)
    return sources.count(source), list(inputs.once(source, ENCODER))


@pytest.mark.parametrize(("name", "compression"), [("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP"), ("a", "")])
def test_values_by_name(tmp_path, name, compression):
    path = written(tmp_path / name, [example(0.5 * n, f"w{n % 3}", n % 2) for n in range(9_000)], compression)
    count, chunks = read(path, format=None if "." in name else "tfrecord")
    assert count == 9_000
    assert [x for chunk in chunks for x in chunk.numeric[:, 0]] == [0.5 * n for n in range(9_000)]
    assert [y for chunk in chunks for y in chunk.labels] == [n % 2 for n in range(9_000)]
    words = [int(each) for each in chunks[0].ids[:3, 0]]
    assert words == [features._digest(f"w{n}") % 50 for n in range(3)]
    assert set(chunks[0].ids[:, 1]) == {2}


def test_reading_begins_at_any_record(tmp_path):
    path = written(tmp_path / "a.tfrecord", [example(n, "w") for n in range(100)])
    chunks = sources.chunks(sources.Source((path,)), path, {"x": "number"}, first=60)
    assert [x for chunk in chunks for x in chunk["x"]] == list(range(60, 100))


def test_missing_values(tmp_path):
    path = written(tmp_path / "a.tfrecord", [example(1.0, "w"), example(i=None), example(2.0, "")])
    _, (chunk,) = read(path)
    assert chunk.numeric[:, 0].tolist() == [1, 0, 2]
    assert chunk.ids[1:, 0].tolist() == [0, 0]
    assert chunk.ids[:, 1].tolist() == [2, 8, 2]


def test_damage_names_the_file_and_the_record(tmp_path):
    path = tmp_path / "a.tfrecord"
    written(path, [example(1.0, "word")] * 20)
    whole = path.read_bytes()
    size = len(whole) // 20
    damaged = bytearray(whole)
    damaged[7 * size + 20] ^= 1
    for content in (bytes(damaged), whole[: 7 * size + 40]):
        path.write_bytes(content)
        with pytest.raises(errors.InputError, match=r"a\.tfrecord: record 8: it is corrupt or cut short"):
            read(str(path))
    path.write_bytes(gzip.compress(bytes(damaged)))
    with pytest.raises(errors.InputError, match=r"a\.tfrecord: record 8: it is corrupt"):
        read(str(path))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([b"\xff\xff\xff"], r"a\.tfrecord: record 1: it is no tf\.train\.Example"),
        ([example(1.0)] * 3, r"have no feature 'w'"),
        ([example(1.0, "w"), b"\xff\xff\xff"], r"a\.tfrecord: a record does not hold what is expected"),
    ],
)
def test_other_content_is_explained(tmp_path, records, message):
    path = written(tmp_path / "a.tfrecord", records)
    with pytest.raises(errors.InputError, match=message):
        read(path)
