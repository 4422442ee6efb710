import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paceline.training.input import shards

SIZES = st.lists(st.integers(0, 3_000), min_size=1, max_size=8).filter(any)


def work(sizes, epochs=1.0, seed=0):
    return shards.cut({f"file-{i}": size for i, size in enumerate(sizes)}, epochs, seed)


@given(sizes=SIZES)
def test_shards_are_distinct_and_complete(sizes):
    cut = work(sizes)
    rows = [(shard.file, shard.first + i) for shard in cut.shards for i in range(shard.rows)]
    assert rows == [(file, row) for file, size in enumerate(sizes) for row in range(size)]
    assert all(shard.rows > 0 for shard in cut.shards)


def test_shards_are_many_but_not_too_many():
    assert len(work([1_000_000]).shards) == 64
    assert len(work([100]).shards) == 1
    huge = work([10**9] * 8)
    assert 4_000 <= len(huge.shards) <= 4_104
    assert max(shard.rows for shard in work([10**7] * 8).shards) <= 65_536


@given(sizes=SIZES, epochs=st.floats(0.01, 4), seed=st.integers(0, 99))
def test_what_is_due_in_all_epochs_is_the_total(sizes, epochs, seed):
    cut = work(sizes, epochs, seed)
    ones = np.ones(len(cut.shards), dtype=np.int64)
    due = sum(int(cut.due(ones * epoch).sum()) for epoch in range(6))
    assert due == cut.total == int(cut.before(ones * 6).sum())
    assert cut.total - epochs * cut.examples < 1


def test_other_files_have_another_identity():
    assert work([10, 20]).identity == work([10, 20], epochs=3).identity
    assert work([10, 20]).identity != work([10, 20], seed=1).identity
    assert work([10, 20]).identity != work([20, 10]).identity
