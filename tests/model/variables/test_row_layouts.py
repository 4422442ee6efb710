import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.imbalances import max_over_mean
from paceline.model.variables.row_layouts import RowLayout, RowOrder

LAYOUTS = st.integers(1, 5000).flatmap(
    lambda rows: st.builds(
        RowLayout,
        rows=st.just(rows),
        shards=st.integers(1, min(rows, 17)),
        order=st.sampled_from(RowOrder),
    )
)


@given(LAYOUTS)
def test_every_row_has_one_place_and_every_place_a_row(layout):
    rows = np.arange(layout.rows, dtype=np.int64)
    shard, place = layout.locate(rows)
    assert (layout.row(shard, place) == rows).all()
    for each in range(layout.shards):
        assert sorted(place[shard == each]) == list(range(layout.size(each)))


@given(LAYOUTS)
def test_shards_are_ranges_of_the_stored_order_and_differ_by_one_row_at_most(layout):
    sizes = [layout.size(shard) for shard in range(layout.shards)]
    assert max(sizes) - min(sizes) <= 1
    assert [layout.start(shard) for shard in range(layout.shards)] == list(np.cumsum([0, *sizes])[:-1])


@given(LAYOUTS)
def test_numbers_and_arrays_agree(layout):
    for row in {0, layout.rows // 2, layout.rows - 1}:
        shard, place = layout.locate(np.array([row], dtype=np.int64))
        assert layout.locate(row) == (shard[0], place[0])


@given(st.integers(1, 5000), st.integers(1, 17), st.integers(1, 17))
def test_hashed_rows_keep_their_order_when_the_number_of_shards_changes(rows, one, other):
    first, second = (
        RowLayout(rows=rows, shards=min(rows, shards), order=RowOrder.HASHED) for shards in (one, other)
    )
    row = np.arange(rows, dtype=np.int64)
    stored = [
        layout.start(shard) + place for layout in (first, second) for shard, place in (layout.locate(row),)
    ]
    assert (stored[0] == stored[1]).all()
    assert first.stored_as == second.stored_as


def test_contiguous_and_strided_rows_are_where_tensorflow_has_them():
    rows = np.arange(10)
    shard, place = RowLayout(rows=10, shards=3, order=RowOrder.STRIDED).locate(rows)
    assert shard.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert place.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    shard, _ = RowLayout(rows=10, shards=3).locate(rows)
    assert shard.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("order", [RowOrder.STRIDED, RowOrder.HASHED])
@pytest.mark.parametrize("exponent", [1.05, 1.2, 1.5])
@pytest.mark.parametrize("shards", [2, 4, 8])
def test_the_rows_of_a_batch_spread_evenly(order, exponent, shards):
    generator = np.random.default_rng(0)
    tables = 10 ** generator.integers(2, 6, 26)
    offsets = np.concatenate([[0], np.cumsum(tables)[:-1]])
    layout = RowLayout(rows=int(tables.sum()), shards=shards, order=order)
    laws = [np.cumsum(np.arange(1, rows + 1) ** -exponent) for rows in tables]
    loads = np.zeros(shards)
    for _ in range(20):
        ids = [np.searchsorted(law, generator.random(512) * law[-1]) for law in laws]
        shard, _ = layout.locate(np.unique(np.stack(ids, axis=1) + offsets))
        loads += np.bincount(shard, minlength=shards)
    assert max_over_mean(list(loads)) < 1.1


@pytest.mark.parametrize(("rows", "shards"), [(0, 1), (3, 0), (3, 4)])
def test_impossible_cuts_are_refused(rows, shards):
    with pytest.raises(ValueError, match=f"{rows} rows cannot be cut into {shards} shards"):
        RowLayout(rows=rows, shards=shards)
