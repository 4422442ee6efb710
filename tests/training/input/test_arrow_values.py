"""NumPy arrays of Arrow's are what pyarrow's own are, without pandas."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paceline.training.input import arrow_values

CHUNKS = st.lists(st.lists(st.one_of(st.none(), st.integers(-100, 100)), max_size=20), max_size=4)


@given(CHUNKS, st.integers(0, 10), st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64()]))
def test_numbers(chunks, first, kind):
    array = pa.chunked_array(chunks, kind).slice(first)
    expected = array.fill_null(-7).to_numpy()
    for made in (arrow_values.numbers(array, -7), arrow_values.numbers(array.combine_chunks(), -7)):
        assert made.tolist() == expected.tolist()
        assert made.dtype == expected.dtype


@given(CHUNKS, st.integers(0, 10))
def test_numbers_that_are_missing(chunks, first):
    array = pa.chunked_array(chunks, pa.float64()).slice(first)
    np.testing.assert_array_equal(
        arrow_values.numbers(array, np.nan), np.array(array.to_pylist(), dtype=np.float64)
    )


@given(st.lists(st.booleans()))
def test_flags(values):
    assert arrow_values.flags(np.array(values, dtype=bool)).to_pylist() == values


DECODES = """
import sys
from paceline.training import features
from paceline.training.input import inputs, sources
ids = (features.Hashed("id", 7), features.Identity("other", 20),
    features.Several(features.Identity("tags", 30), 3, separator="|"))
encoder = features.FeatureSet((features.Numeric("x"),), ids, features.Label("label"))
(examples,) = inputs.once(sources.Source((sys.argv[1],)), encoder)
assert len(examples.labels) == 1000
assert "pandas" not in sys.modules and "tensorflow" not in sys.modules
"""


def test_examples_are_decoded_without_pandas(tiny_data):
    done = subprocess.run([sys.executable, "-c", DECODES, str(tiny_data[1])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
