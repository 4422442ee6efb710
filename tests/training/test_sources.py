import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from paceline.training import errors, features, shards, sources
from paceline.training import inputs as reading

ENCODER = features.FeatureSet((features.Numeric("x"),), (features.Hashed("w", 50),), features.Label("y"))


def parquet(path, rows, start=0, row_group_size=None):
    table = pa.table(
        {
            "x": np.arange(start, start + rows, dtype=np.float64),
            "w": [f"w{i % 3}" for i in range(rows)],
            "y": np.arange(rows) % 2,
            "unused": ["?"] * rows,
        }
    )
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size)
    return str(path)


def csv(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def read(source, **options):
    return [int(x) for chunk in reading.once(source, ENCODER, **options) for x in chunk.numeric[:, 0]]


def test_count_and_decode_parquet(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 100, row_group_size=7),))
    assert sources.count(source) == 100
    assert read(source) == list(range(100))


def test_count_and_decode_csv(tmp_path):
    lines = ["y,w,x", "1, a,0", "", "0,b,1", "", ""]
    source = sources.Source((csv(tmp_path / "a.csv", lines),))
    assert sources.count(source) == 2
    (chunk,) = reading.once(source, ENCODER)
    assert chunk.numeric[:, 0].tolist() == [0, 1]
    assert chunk.labels.tolist() == [1, 0]


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_count_of_lines_does_not_depend_on_blocks_or_line_ends(tmp_path, monkeypatch, end):
    (tmp_path / "a.csv").write_bytes(("x,w,y\r\n1,a,0\r\n\r\n2,b,1" + end).encode())
    source = sources.Source((str(tmp_path / "a.csv"),))
    for block in range(1, 12):
        monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
        assert sources.count(source) == 2


def test_csv_without_a_header_and_with_a_line_to_skip(tmp_path):
    path = csv(tmp_path / "a.csv", ["| not data", "3,w0,1", "4,w1,0"])
    source = sources.Source((path,), column_names=("x", "w", "y"), skip_rows=1)
    assert sources.count(source) == 2
    assert read(source) == [3, 4]


def test_patterns_and_other_file_systems():
    import fsspec

    memory = fsspec.filesystem("memory")
    for i in range(2):
        with memory.open(f"/set/part-{i}.csv", "w") as stream:
            stream.write(f"x,w,y\n{i},a,1\n")
    source = sources.Source(("memory://set/part-*.csv",))
    assert len(source.files()) == 2
    assert sources.count(source) == 2
    assert read(source) == [0, 1]
    memory.rm("/set", recursive=True)


@pytest.mark.parametrize("files", [1, 5])
def test_trainers_read_distinct_and_complete_shards(tmp_path, files):
    paths = [parquet(tmp_path / f"{i}.parquet", 10, start=10 * i) for i in range(files)]
    source = sources.Source(tuple(paths))
    shares = [read(source, shard=shards.Shard(i, 3), seed=1) for i in range(3)]
    assert sorted(row for share in shares for row in share) == list(range(10 * files))


def test_shuffled_batches_are_full_and_repeat_the_whole_shard(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))

    def first(count, seed):
        stream = reading.shuffled(source, ENCODER, shards.WHOLE, 4, seed)
        batches = [next(stream).numeric[:, 0].tolist() for _ in range(count)]
        assert all(len(batch) == 4 for batch in batches)
        return [row for batch in batches for row in batch]

    rows = first(5, seed=0)
    assert sorted(rows) == sorted(list(range(10)) * 2)
    assert rows == first(5, seed=0)
    assert rows != first(5, seed=1)


def test_a_batch_may_be_larger_than_the_shard(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 3),))
    batch = next(reading.shuffled(source, ENCODER, shards.WHOLE, 7, 0))
    assert sorted(batch.numeric[:6, 0].tolist()) == [0, 0, 1, 1, 2, 2]


def test_prefetching_counts_the_wait_and_passes_errors_on(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))
    with reading.Prefetched(reading.shuffled(source, ENCODER, shards.WHOLE, 4, 0)) as batches:
        assert len(batches.next().labels) == 4
        assert batches.wait_seconds > 0

    def broken():
        raise errors.InputError("broken")
        yield

    with reading.Prefetched(broken()) as batches, pytest.raises(errors.InputError, match="broken"):
        batches.next()


def attempt(source):
    sources.count(source)
    return read(source)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x,w,y", "1,a,0", "2,b"], r"bad.csv:3: 2 fields where 3 are expected"),
        (["x,w,y", "1,a,0", "", "two,b,1"], r"bad.csv:4: column 'x' holds 'two', not a number"),
        (["x,v,y", "1,a,0"], r"bad.csv: there is no column 'w'; known are: v, x, y"),
        (["xx,w,y", "1,a,0"], r"no column 'x'; did you mean 'xx'"),
        (["x,w,y"], r"bad.csv: no examples in it"),
        ([], r"bad.csv: no examples in it"),
    ],
)
def test_a_bad_csv_file_is_explained(tmp_path, lines, message):
    with pytest.raises(errors.InputError, match=message):
        attempt(sources.Source((csv(tmp_path / "bad.csv", lines),)))


def test_other_bad_inputs_are_explained(tmp_path):
    with pytest.raises(errors.InputError, match="there is no such file"):
        attempt(sources.Source((str(tmp_path / "none.csv"),)))
    with pytest.raises(errors.InputError, match="no file matches"):
        attempt(sources.Source((str(tmp_path / "none-*.csv"),)))
    with pytest.raises(errors.InputError, match=r"set training\.inputs\.train"):
        attempt(sources.Source(()))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(errors.InputError, match="not a whole Parquet file"):
        attempt(sources.Source((str(tmp_path / "a.parquet"),)))
    pyarrow.parquet.write_table(pa.table({"x": ["one"], "w": ["a"], "y": [1]}), tmp_path / "b.parquet")
    with pytest.raises(errors.InputError, match="column 'x' does not hold numbers"):
        attempt(sources.Source((str(tmp_path / "b.parquet"),)))
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "y": [1]}), tmp_path / "c.parquet")
    with pytest.raises(errors.InputError, match="no column 'w'"):
        attempt(sources.Source((str(tmp_path / "c.parquet"),)))


def test_a_trainer_without_examples_says_so(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 1),))
    with pytest.raises(errors.InputError, match="trainer 1 of 2 gets no example"):
        next(reading.shuffled(source, ENCODER, shards.Shard(1, 2), 4, 0))
