import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.training import errors, features
from paceline.training.input import columns, inputs, sources

WORDS = features.Lists("string", "|")
NUMBERS = features.Lists("integer", "|")
TAGS = features.Several(features.Vocabulary("tags", ("a", "b", "c")), 2)
PAGES = features.Several(features.Identity("pages", 100), 3, "sum", separator=" ")
ENCODER = features.FeatureSet((), (TAGS, features.Identity("one", 5), PAGES), features.Label("y"))


def listed(array, kind):
    values, lengths = columns.decoded(pa.chunked_array([array]), kind, "x")
    values = values.to_pylist() if kind.kind == "string" else values.tolist()
    ends = np.cumsum(lengths)
    return [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]


ROWS = st.lists(st.none() | st.lists(st.none() | st.text("ab ", max_size=3), max_size=4), min_size=1)


@settings(deadline=None)  # pyarrow loads its kernels at the first call
@given(ROWS, st.sampled_from([pa.list_(pa.string()), pa.large_list(pa.large_string())]))
def test_lists_of_words_keep_their_values(rows, kind):
    expected = [[word.strip() for word in row or () if word and word.strip()] for row in rows]
    assert listed(pa.array(rows, kind), WORDS) == expected


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | st.integers(-5, 99), max_size=4), min_size=1))
def test_lists_of_numbers_keep_their_values(rows):
    expected = [[number for number in row or () if number is not None] for row in rows]
    assert listed(pa.array(rows, pa.list_(pa.int32())), NUMBERS) == expected


@settings(deadline=None)
@given(st.lists(st.none() | st.text("ab |", max_size=6), min_size=1))
def test_texts_are_split_at_the_separator(rows):
    expected = [[word.strip() for word in (row or "").split("|") if word.strip()] for row in rows]
    assert listed(pa.array(rows, pa.string()), WORDS) == expected
    assert listed(pa.array(rows, pa.string()).dictionary_encode(), WORDS) == expected


def test_lists_of_a_fixed_size_and_of_dictionary_words():
    rows = [[1, 2], None, [3, 4]]
    assert listed(pa.array(rows, pa.list_(pa.int64(), 2)), NUMBERS) == [[1, 2], [], [3, 4]]
    words = pa.ListArray.from_arrays([0, 1, 3], pa.array(["a", "b", "a"]).dictionary_encode())
    assert listed(words, WORDS) == [["a"], ["b", "a"]]


def test_slices_of_lists_are_whole():
    assert listed(pa.array([[1], [2, 3], [], [4]]).slice(1), NUMBERS) == [[2, 3], [], [4]]


IDS = [[1, 2, 0, 5, -1, -1], [-1, -1, 4, -1, -1, -1], [3, 0, 4, 7, 8, 9]]


def test_several_values_out_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("tags,one,pages,y\na| b,0,5,1\n,9,,0\nc|other|a,4,7 8  9 10,1\n")
    (chunk,) = inputs.once(sources.Source((str(path),)), ENCODER)
    assert chunk.ids.tolist() == IDS
    assert chunk.ids.dtype == np.int32


def test_several_values_out_of_parquet(tmp_path):
    table = pa.table(
        {
            "tags": [["a", "b"], None, ["c", "other", "a"]],
            "one": [0, 9, 4],
            "pages": [[5], [], [7, 8, 9, 10]],
            "y": [1, 0, 1],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (chunk,) = inputs.once(sources.Source((str(tmp_path / "a.parquet"),)), ENCODER)
    assert chunk.ids.tolist() == IDS


def test_a_value_of_another_kind_is_explained(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("tags,one,pages,y\na,0,5 x,1\n")
    with pytest.raises(errors.InputError, match=r"a\.csv:2: column 'pages' holds 'x', not an integer"):
        list(inputs.once(sources.Source((str(path),)), ENCODER))
