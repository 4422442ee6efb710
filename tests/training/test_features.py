import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import errors, features


def words(*values):
    return pa.array(values).dictionary_encode()


def test_numeric():
    columns = {"x": np.array([-3.0, 0.0, 1.0, np.nan])}
    assert features.Numeric("x").values(columns).tolist() == [-3, 0, 1, 0]
    scaled = features.Numeric("x", mean=1, deviation=2).values(columns)
    assert scaled.tolist() == [-2, -0.5, 0, 0]
    assert scaled.dtype == np.float32
    logged = features.Numeric("x", log=True).values(columns)
    assert logged == pytest.approx([-np.log(4), 0, np.log(2), 0])


def test_bucketised():
    feature = features.Bucketised("x", (1.0, 5.0))
    columns = {"x": np.array([0.0, 1.0, 4.9, 5.0, np.nan])}
    assert feature.ids(columns).tolist() == [0, 1, 1, 2, 3]
    assert feature.rows == 4
    assert feature.name == "x_bucket"


def test_vocabulary_ignores_space_around_words():
    feature = features.Vocabulary("w", ("red", "blue"))
    assert feature.ids({"w": words(" blue", "red", "green", None, "blue ")}).tolist() == [2, 1, 0, 0, 2]
    assert feature.rows == 3


def test_hashed_is_stable_and_within_its_rows():
    feature = features.Hashed("w", 10)
    ids = feature.ids({"w": words("a", "b", "a")})
    expected = int.from_bytes(hashlib.blake2b(b"a", digest_size=8).digest(), "little") % 10
    assert ids[0] == ids[2] == expected
    assert ids.max() < 10


def test_identity_gathers_strangers_in_the_last_row():
    feature = features.Identity("i", 5)
    assert feature.ids({"i": np.array([0, 4, 5, -1, 99])}).tolist() == [0, 4, 4, 4, 4]


def test_cross_of_few_combinations_is_exact():
    cross = features.Cross((features.Identity("a", 3), features.Identity("b", 4)))
    a, b = (each.ravel() for each in np.meshgrid(np.arange(3), np.arange(4), indexing="ij"))
    assert cross.ids({"a": a, "b": b}).tolist() == list(range(12))
    assert (cross.rows, cross.name) == (12, "a_x_b")
    assert set(cross.kinds()) == {"a", "b"}


@given(st.lists(st.integers(0, 99_999), min_size=1, max_size=50))
def test_cross_of_many_combinations_is_hashed(values):
    parts = tuple(features.Identity(name, 100_000) for name in "abcde")  # 1e25: wraps round in 64 bits
    cross = features.Cross(parts, buckets=97)
    ids = cross.ids({name: np.array(values) for name in "abcde"})
    assert cross.rows == 97
    assert ids.min() >= 0
    assert ids.max() < 97


def test_hashed_crosses_spread_evenly():
    cross = features.Cross((features.Identity("a", 1000), features.Identity("b", 1000)), buckets=100)
    a, b = (each.ravel() for each in np.meshgrid(np.arange(300), np.arange(300)))
    counts = np.bincount(cross.ids({"a": a, "b": b}), minlength=100)
    assert counts.min() > 800
    assert counts.max() < 1000


LISTS = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1)


def several(rows, feature):
    values = np.array([value for row in rows for value in row], dtype=np.int64)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return feature.ids({"a": features.Listed(values, lengths)}).tolist()


@given(LISTS, st.integers(1, 6), st.sampled_from(["sum", "mean", "sqrtn"]))
def test_several_values_are_cut_and_padded(rows, length, combiner):
    feature = features.Several(features.Identity("a", 10), length, combiner)
    assert several(rows, feature) == [(row + [-1] * length)[:length] for row in rows]


def test_several_values_without_a_combiner_are_padded_as_in_keras():
    feature = features.Several(features.Identity("a", 5), 3, None)
    assert several([[3], [], [1, 7, 2, 2]], feature) == [[3, 0, 0], [0, 0, 0], [1, 4, 2]]


def test_a_feature_of_several_values_is_named_and_decoded_after_its_feature():
    feature = features.Several(features.Bucketised("x", (1.0, 5.0)), 2, separator=";")
    assert (feature.name, feature.rows) == ("x_bucket", 4)
    assert feature.kinds() == {"x": features.Lists("number", ";")}
    columns = {"x": features.Listed(np.array([0.0, 7.0, 1.0]), np.array([1, 2]))}
    assert feature.ids(columns).tolist() == [[0, -1], [2, 1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda one: features.Several(one, 0),
        lambda one: features.Several(one, 2, separator=""),
        lambda one: features.Several(features.Several(one, 2), 2),
        lambda one: features.Several(features.Cross((one, features.Identity("b", 3))), 2),
        lambda one: features.Cross((features.Several(one, 2), features.Identity("b", 3))),
    ],
)
def test_several_values_without_a_meaning_are_refused(make):
    with pytest.raises(errors.SettingsError, match="feature 'a"):
        make(features.Identity("a", 10))


def test_labels():
    assert features.Label("l").values({"l": np.array([0, 1, 2])}).tolist() == [0, 1, 1]
    positive = features.Label("l", (">50K", ">50K."))
    assert positive.values({"l": words(" >50K.", "<=50K", ">50K")}).tolist() == [1, 0, 1]
    assert positive.kinds() == {"l": "string"}


@pytest.mark.parametrize("word", ["", "  ", "NA", " null ", "NaN", None])
def test_a_missing_word_is_the_same_everywhere(word):
    column = {"w": words("a", word)}
    assert features.Hashed("w", 50).ids(column)[1] == 0
    assert features.Vocabulary("w", ("a",)).ids(column)[1] == 0
    alone, whole = features.Hashed("w", 50), {"w": words("a", None)}
    cross = features.Cross((alone, features.Vocabulary("w", ("a",))), 20)
    assert cross.ids(column).tolist() == cross.ids(whole).tolist()


def test_a_word_of_a_vocabulary_is_never_missing():
    assert features.Vocabulary("w", ("NA", "nan")).ids({"w": words("NA", "nan", "null")}).tolist() == [
        1,
        2,
        0,
    ]


@pytest.mark.parametrize(
    ("label", "column"),
    [
        (features.Label("l"), np.array([1.0, 0.0, np.nan])),
        (features.Label("l", ("yes",)), words("yes", "no", None)),
        (features.Label("l", ("yes",)), words("yes", "no", " ")),
        (features.Label("l", ("yes",)), words("yes", "no", "NA")),
    ],
)
def test_a_missing_label_is_refused_with_its_row(label, column):
    with pytest.raises(errors.ValueFault, match="column 'l' is the label and holds no value") as caught:
        label.values({"l": column})
    assert caught.value.row == 2
    assert features.Label("l", ("NA",)).values({"l": words("NA", "no")}).tolist() == [1, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: features.Numeric("x", deviation=0.0),
        lambda: features.Numeric("x", mean=float("nan")),
        lambda: features.Bucketised("x", (1.0, 0.5)),
        lambda: features.Bucketised("x", (1.0, 1.0)),
        lambda: features.Bucketised("x", (1.0, float("inf"))),
        lambda: features.Vocabulary("x", ("a", "b", "a")),
        lambda: features.Vocabulary("x", ("a", " b")),
        lambda: features.Vocabulary("x", ("a", "")),
        lambda: features.Vocabulary("x", "ab"),
        lambda: features.Label("x", ("a", " b")),
        lambda: features.Label("x", ("a", "")),
        lambda: features.Label("x", "ab"),
        lambda: features.Label("x", ""),
        lambda: features.Hashed("x", 0),
        lambda: features.Hashed("x", 2**31),
        lambda: features.Identity("x", -1),
        lambda: features.Cross((features.Identity("x", 2), features.Identity("y", 2)), 0),
    ],
)
def test_settings_without_a_meaning_are_refused(make):
    with pytest.raises(errors.SettingsError, match="feature 'x"):
        make()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "two features or more, not of 0"),
        ((features.Identity("x", 2),), "two features or more, not of 1"),
        (
            (features.Identity("x", 2), features.Hashed("x", 5)),
            "column 'x' is read as integer by 'x' and as string by 'x'",
        ),
        (
            (
                features.Cross((features.Bucketised("x", (1.0,)), features.Identity("y", 2))),
                features.Identity("x", 3),
            ),
            "column 'x' is read as number by 'x_bucket_x_y' and as integer by 'x'",
        ),
    ],
)
def test_crosses_that_cannot_be_made_are_refused(parts, message):
    with pytest.raises(errors.SettingsError, match=message):
        features.Cross(parts)


@pytest.mark.parametrize(
    ("numeric", "categorical", "message"),
    [
        (("x", "x"), (), "two numbers have the name 'x'"),
        ((), (features.Hashed("w", 5), features.Vocabulary("w", ("a",))), "two categories have the name 'w'"),
        (
            ("x",),
            (features.Hashed("x", 5),),
            "column 'x' is read as number by 'x' and as string by 'x'; give one of them a column of its own",
        ),
        ((), (features.Hashed("l", 5),), "column 'l' is read as string by 'l' and as number by 'l'"),
    ],
)
def test_a_set_that_cannot_be_read_is_refused(numeric, categorical, message):
    with pytest.raises(errors.SettingsError, match=message):
        features.FeatureSet(tuple(map(features.Numeric, numeric)), categorical, features.Label("l"))


def test_a_column_may_have_several_uses_of_one_kind():
    known = features.FeatureSet(
        (features.Numeric("x"),), (features.Bucketised("x", (0.0,)),), features.Label("x")
    )
    assert known.kinds() == {"x": "number"}


def test_a_set_encodes_all_parts():
    one, two = features.Identity("a", 3), features.Identity("b", 4)
    known = features.FeatureSet(
        (features.Numeric("x"),), (one, two, features.Cross((one, two))), features.Label("l")
    )
    columns = {"x": np.zeros(2), "a": np.array([1, 2]), "b": np.array([0, 3]), "l": np.array([1.0, 0.0])}
    examples = known.encode(columns)
    assert examples.ids.tolist() == [[1, 0, 4], [2, 3, 11]]
    assert examples.labels.tolist() == [1, 0]
    assert known.kinds() == {"x": "number", "a": "integer", "b": "integer", "l": "number"}
    assert examples.take(slice(1, 2)).ids.tolist() == [[2, 3, 11]]


def test_a_set_without_numbers_has_no_columns_of_them():
    known = features.FeatureSet((), (features.Identity("a", 3),), features.Label("l"))
    examples = known.encode({"a": np.array([1, 2]), "l": np.array([1.0, 0.0])})
    assert examples.numeric.shape == (2, 0)


def test_a_set_without_categories_has_no_columns_of_them():
    known = features.FeatureSet((features.Numeric("x"),), (), features.Label("l"))
    examples = known.encode({"x": np.array([1.0, 2.0]), "l": np.array([1.0, 0.0])})
    assert examples.ids.shape == (2, 0)
