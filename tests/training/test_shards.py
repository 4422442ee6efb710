import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import shards


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    trainers=st.integers(1, 9),
    chunk=st.integers(1, 17),
)
def test_shards_are_distinct_and_complete(sizes, trainers, chunk):
    files = [f"file-{i}" for i in range(len(sizes))]
    rows_of = dict(zip(files, sizes, strict=True))
    seen = []
    for index in range(trainers):
        shard = shards.Shard(index, trainers)
        for file in shard.files(files):
            for first in range(0, rows_of[file], chunk):
                rows = min(chunk, rows_of[file] - first)
                mine = shard.rows(files, first, rows)
                mine = np.arange(rows) if mine is None else mine
                seen += [(file, first + int(row)) for row in mine]
    assert sorted(seen) == sorted((file, row) for file, size in rows_of.items() for row in range(size))


@given(files=st.integers(1, 30), trainers=st.integers(1, 9))
def test_shards_by_row_differ_by_one_at_most(files, trainers):
    names = [str(i) for i in range(files)]
    if files < trainers:
        sizes = [len(shards.Shard(i, trainers).rows(names, 0, 100)) for i in range(trainers)]
    else:
        sizes = [len(shards.Shard(i, trainers).files(names)) for i in range(trainers)]
    assert max(sizes) - min(sizes) <= 1
