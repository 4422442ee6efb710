"""TFRecord files of tf.train.Example, whole, gzipped and damaged."""

import gzip
import math

import pytest

from paceline.training import errors, features
from paceline.training.input import inputs, sources

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
    assert [x for chunk in chunks for x in chunk.columns["x"]] == list(range(60, 100))


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
        ([example(1.0)] * 3, r"no record has a feature 'w'"),
        ([example(1.0, "w"), b"\xff\xff\xff"], r"a\.tfrecord: record 2: it is no tf\.train\.Example"),
    ],
)
def test_other_content_is_explained(tmp_path, records, message):
    path = written(tmp_path / "a.tfrecord", records)
    with pytest.raises(errors.InputError, match=message):
        read(path)


def features_of(**stored):
    """An example with features of any kind: texts, integers or floats, as many as are given."""
    import tensorflow as tf

    def feature(values):
        if not values:
            return tf.train.Feature()
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    made = {name: feature(values) for name, values in stored.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"x": [1.0, 2.0]}, "feature 'x' holds 2 values, not one"),
        ({"x": [b"1"]}, "feature 'x' holds texts, and floats before"),
        ({"i": [2.5]}, "feature 'i' holds floats, and integers before"),
        ({"w": [b"\xff"]}, r"column 'w' holds b'\\xff', not a text in UTF-8"),
        ({"y": []}, "column 'y' is the label and holds no value"),
        ({"x": [math.inf]}, "column 'x' holds inf, which is not finite"),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path, odd, message):
    whole = {"x": [1.0], "w": [b"a"], "i": [2], "y": [1]}
    records = [features_of(**whole)] * 150 + [features_of(**{**whole, **odd})] + [features_of(**whole)]
    path = written(tmp_path / "a.tfrecord", records)
    with pytest.raises(errors.InputError, match=rf"a\.tfrecord: record 151: {message}"):
        read(path)


def test_a_label_that_a_record_lacks_is_named(tmp_path):
    whole = {"x": [1.0], "w": [b"a"], "i": [2]}
    path = written(tmp_path / "a.tfrecord", [features_of(**whole, y=[0]), features_of(**whole)])
    with pytest.raises(errors.InputError, match=r"a\.tfrecord: record 2: column 'y' is the label"):
        read(path)


def test_a_feature_may_be_seen_late(tmp_path):
    records = [features_of(y=[1], i=[1], x=[1.0])] * 300 + [features_of(y=[0], i=[1], x=[1.0], w=[b"a"])]
    count, (chunk,) = read(written(tmp_path / "a.tfrecord", records))
    assert count == 301
    assert set(chunk.ids[:300, 0]) == {0}
    assert chunk.ids[300, 0] == features._digest("a") % 50


def test_lists_where_several_values_are_wanted(tmp_path):
    encoder = features.FeatureSet(
        (),
        (
            features.Several(features.Vocabulary("tags", ("a", "b")), 3),
            features.Several(features.Identity("pages", 9), 2, "sum"),
        ),
        features.Label("y"),
    )
    rows = [
        {"tags": [b"b", b"", b"a"], "pages": [3, 4, 5], "y": [1]},
        {"tags": [], "y": [0]},
        {"tags": [b"a", b"other"], "pages": [7], "y": [1]},
    ]
    path = written(tmp_path / "a.tfrecord", [features_of(**row) for row in rows])
    (chunk,) = inputs.once(sources.Source((path,)), encoder)
    assert chunk.ids.tolist() == [[2, 1, -1, 3, 4], [-1] * 5, [1, 0, -1, 7, -1]]


def test_an_integer_of_minus_one_is_a_value(tmp_path):
    encoder = features.FeatureSet((features.Numeric("i"),), (), features.Label("y"))
    path = written(tmp_path / "a.tfrecord", [features_of(i=[-1], y=[1]), features_of(y=[0])])
    (chunk,) = inputs.once(sources.Source((path,)), encoder)
    assert chunk.numeric[:, 0].tolist() == [-1, 0]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("length", [35_615, 101_151, 0x9C78])
def test_a_length_that_looks_like_a_compression_is_a_length(tmp_path, compression, length):
    """The first bytes of gzip are 1f 8b, those of zlib 78 9c; so may be those of a record's length."""
    bare = features_of(x=[1.0], w=[b"a"], i=[2], y=[1], filling=[b""])
    for size in range(length - len(bare) - 20, length):
        record = features_of(x=[1.0], w=[b"a"], i=[2], y=[1], filling=[b"x" * size])
        if len(record) == length:
            break
    assert len(record) == length
    count, chunks = read(written(tmp_path / "a.tfrecord", [record] * 3, compression))
    assert (count, sum(len(chunk.labels) for chunk in chunks)) == (3, 3)


def test_an_empty_file_has_no_records(tmp_path):
    whole = written(tmp_path / "b.tfrecord", [example(1.0, "w")])
    source = sources.Source((written(tmp_path / "a.tfrecord", []), whole))
    assert list(sources.rows(source, ENCODER.kinds()).values()) == [0, 1]
    assert sum(len(chunk.labels) for chunk in inputs.once(source, ENCODER)) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"x,w,y\n1,a,1\n" * 9,
        b"abc",
        b"\x1f\x8b\x08 no gzip at all",
        b"\x1f\x8b\x08 no",
        gzip.compress(b"x,w,y\n1,a,1\n"),
    ],
    ids=["text", "short", "no gzip", "short and no gzip", "gzip of text"],
)
def test_what_is_no_record_file_is_named(tmp_path, content):
    (tmp_path / "a.tfrecord").write_bytes(content)
    with pytest.raises(
        errors.InputError, match=r"a\.tfrecord: record 1: it is corrupt or cut short"
    ) as caught:
        read(str(tmp_path / "a.tfrecord"))
    assert "\n" not in str(caught.value)
    assert "Graph execution" not in str(caught.value)
