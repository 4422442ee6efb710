import bz2
import csv as csv_module
import decimal
import gzip
import io
import itertools
import lzma
import math
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import errors, features
from paceline.training.input import csv_files, shards, sources
from paceline.training.input import inputs as reading
from paceline.training.input.input_costs import IdleMeter

ENCODER = features.FeatureSet((features.Numeric("x"),), (features.Hashed("w", 50),), features.Label("y"))

ENDS_EARLY = """
import io, sys, time
from paceline.training.input import csv_files, locations, sources

class Slow(io.FileIO):
    def read(self, size):
        time.sleep(0.1)
        return super().read(size)

path = sys.argv[1]
locations.opened = lambda *_: Slow(path)
csv_files._BLOCK_BYTES = 4_096
source = sources.Source((path,), column_names=("x",))
print(next(sources.chunks(source, path, {"x": "number"})).columns["x"][0])
"""


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


def read(source):
    return [int(x) for chunk in reading.once(source, ENCODER) for x in chunk.numeric[:, 0]]


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
        monkeypatch.setattr(csv_files, "_BLOCK_BYTES", block)
        assert sources.count(source) == 2


@given(
    rows=st.lists(st.tuples(st.integers(-99, 99), st.sampled_from(["a", "é", "b c"])), max_size=30),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]), min_size=1, max_size=4),
    is_ended=st.booleans(),
    block=st.integers(12, 60),
)
def test_rows_do_not_depend_on_blocks_or_line_ends(tmp_path_factory, rows, ends, is_ended, block):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    lines = ["x,w,y", *(f"{x},{w},1" for x, w in rows)]
    text = "".join(line + end for line, end in zip(lines, itertools.cycle(ends)))
    path.write_bytes((text if is_ended else text.rstrip("\r\n")).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_BLOCK_BYTES", block)
        chunks = list(reading.once(sources.Source((str(path),)), ENCODER))
    assert [int(x) for chunk in chunks for x in chunk.numeric[:, 0]] == [x for x, _ in rows]


def test_a_line_longer_than_a_block_is_explained(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(b"1" * 5_000)
    monkeypatch.setattr(csv_files, "_LONGEST_ROW_BYTES", 1_000)
    with pytest.raises(errors.InputError, match=r"a\.csv:1: a row has more than 1,000 bytes; is this CSV\?"):
        read(sources.Source((str(tmp_path / "a.csv"),), column_names=("x", "w", "y")))


def test_a_process_may_end_while_a_slow_file_is_read(tmp_path):
    path = csv(tmp_path / "a.csv", map(str, range(50_000)))
    ended = subprocess.run([sys.executable, "-c", ENDS_EARLY, path], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "0.0\n"), ended.stderr


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


@pytest.mark.parametrize("first", [0, 3, 7, 50, 99])
def test_a_file_is_read_from_any_row_on(tmp_path, first):
    rows = [f"{i},w,1" for i in range(100)]
    for path in (
        parquet(tmp_path / "a.parquet", 100, row_group_size=7),
        csv(tmp_path / "a.csv", ["x,w,y", *rows]),
    ):
        chunks = sources.chunks(sources.Source((path,)), path, {"x": "number"}, first=first)
        assert [int(x) for chunk in chunks for x in chunk.columns["x"]] == list(range(first, 100))


def test_shuffled_batches_are_full_and_repeat_the_whole_share(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))

    def first(count, seed):
        stream = reading.shuffled(source, ENCODER, 0, 1, 4, seed)
        batches = [next(stream).numeric[:, 0].tolist() for _ in range(count)]
        assert all(len(batch) == 4 for batch in batches)
        return [row for batch in batches for row in batch]

    rows = first(5, seed=0)
    assert sorted(rows) == sorted(list(range(10)) * 2)
    assert rows == first(5, seed=0)
    assert rows != first(5, seed=1)


def test_readers_have_shards_of_their_own(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 3_000),))
    shares = []
    for index in range(3):
        stream = reading.shuffled(source, ENCODER, index, 3, 10, 0)
        shares.append({int(x) for _ in range(100) for x in next(stream).numeric[:, 0]})
    assert set.union(*shares) == set(range(3_000))
    assert sum(map(len, shares)) == 3_000


def test_a_batch_may_be_larger_than_the_share(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 3),))
    batch = next(reading.shuffled(source, ENCODER, 0, 1, 7, 0))
    assert sorted(batch.numeric[:6, 0].tolist()) == [0, 0, 1, 1, 2, 2]


def test_the_next_owner_of_a_shard_gets_what_is_left_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_POOL_ROWS", 64)
    source = sources.Source(
        (parquet(tmp_path / "a.parquet", 1_000), parquet(tmp_path / "b.parquet", 500, 1_000))
    )
    assert sum(sources.rows(source).values()) == sources.count(source)
    work = shards.cut(sources.rows(source, ENCODER.kinds()), 1.0)

    def rows(*grants):
        pools = reading.pools(source, ENCODER, work, grants)
        return [int(x) for pool in pools for x in pool.numeric[:, 0]]

    whole = rows(shards.Grant(1, 0, 0, 250))
    assert sorted(whole) == list(range(250, 500))
    assert rows(shards.Grant(1, 0, 0, 100)) == whole[:100]
    assert rows(shards.Grant(1, 0, 100, 250)) == whole[100:]
    assert rows(shards.Grant(1, 1, 0, 250)) != whole
    every = rows(*(shards.Grant(s, 0, 0, work.shards[s].rows) for s in (3, 0, 1, 2, 5, 4)))
    assert sorted(every) == list(range(1_500))


def test_what_is_left_is_a_smaller_batch_where_nothing_follows(tmp_path):
    def examples(rows):
        return features.Examples(
            np.zeros((rows, 0), np.float32), np.zeros((rows, 0), np.int32), np.zeros(rows, np.float32)
        )

    found = reading.batches(iter([examples(5), examples(4), None, None, examples(4), examples(3)]), 4)
    assert [len(batch.labels) for batch in found] == [4, 4, 1, 4, 3]
    found = reading.batches(iter([examples(5), None, examples(3)]), 4, parts=2)
    assert [len(batch.labels) for batch in found] == [4, 2, 4]


def test_a_file_that_became_shorter_is_explained(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 100),))
    work = shards.cut(sources.rows(source, ENCODER.kinds()), 1.0)
    parquet(tmp_path / "a.parquet", 60)
    with pytest.raises(errors.InputError, match=r"a.parquet: it has only 60 rows"):
        list(reading.pools(source, ENCODER, work, [shards.Grant(0, 0, 0, 100)]))


def test_prefetching_counts_the_wait_and_passes_errors_on(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 10),))
    with reading.Prefetched(reading.shuffled(source, ENCODER, 0, 1, 4, 0)) as batches:
        assert len(batches.next().labels) == 4
        assert batches.cost.wait > 0
        assert batches.cost.cpu > 0

    def broken():
        raise errors.InputError("broken")
        yield

    with reading.Prefetched(broken()) as batches, pytest.raises(errors.InputError, match="broken"):
        batches.next()


def test_who_waits_for_a_shard_does_not_wait_for_its_input():
    pauses = IdleMeter()
    is_wanted = threading.Event()

    def slow():
        is_wanted.wait()
        time.sleep(0.2)
        yield "read slowly"
        with pauses.pause():
            time.sleep(0.4)
        yield "had nothing to read"

    with reading.Prefetched(slow(), 1, pauses=pauses) as items:
        began = time.perf_counter()
        is_wanted.set()
        assert items.next() == "read slowly"
        assert items.wait_seconds > 0
        assert items.next() == "had nothing to read"
        elapsed = time.perf_counter() - began
        assert pauses.seconds >= 0.4
        assert items.wait_seconds + pauses.seconds <= elapsed


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
    with pytest.raises(errors.InputError, match=r"b.parquet: row 1: column 'x' holds 'one', not a number"):
        attempt(sources.Source((str(tmp_path / "b.parquet"),)))
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "y": [1]}), tmp_path / "c.parquet")
    with pytest.raises(errors.InputError, match="no column 'w'"):
        attempt(sources.Source((str(tmp_path / "c.parquet"),)))


def test_a_reader_without_examples_says_so(tmp_path):
    source = sources.Source((parquet(tmp_path / "a.parquet", 1),))
    with pytest.raises(errors.InputError, match="reader 1 of 2 gets no example"):
        reading.shuffled(source, ENCODER, 1, 2, 4, 0)


def test_what_is_made_ahead_stops_when_it_is_told_to():
    closed = threading.Event()

    def endless():
        while not closed.is_set():
            yield None

    with reading.Prefetched(reading.batches(reading.ahead(endless(), 1, closed), 4), stopped=closed):
        pass
    assert closed.is_set()


FIELDS = st.sampled_from(
    ["1", "a", "", 'say "no"', "two\nlines", "\r\n", "x,y", '5" disk', '""', " b ", "é\r"]
)


def quoted(field):
    is_plain = not re.search(r'[,\r\n]|^"', field)
    return field if is_plain else '"' + field.replace('"', '""') + '"'


@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=12),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    is_ended=st.booleans(),
    block=st.integers(4, 60),
    skipped=st.lists(st.sampled_from(['# "not data', "", "a,b"]), max_size=2),
)
def test_rows_are_those_that_pythons_reader_finds(tmp_path_factory, rows, end, is_ended, block, skipped):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    text = "".join(",".join(map(quoted, row)) + end for row in [("a", "b\nc"), *rows])
    written = text if is_ended else text.removesuffix(end)
    path.write_bytes(("".join(line + end for line in skipped) + written).encode())
    source = sources.Source((str(path),), skip_rows=len(skipped))
    kinds = {"a": "string", "b\nc": "string"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_BLOCK_BYTES", block)
        file = source.opened(str(path))
        assert file.rows(kinds) == len(rows)
        found = [tuple(row.values()) for table in file.tables(kinds, 0) for row in table.to_pylist()]
        assert found == rows
        whole = path.read_bytes()
        for number, row in enumerate(rows):
            line = int(file.place(number).rpartition(":")[2])
            after = csv_module.reader(io.StringIO(_from_line(whole, line).decode(), newline=""))
            assert tuple(next(after)) == row


def _from_line(data, line):
    for _ in range(line - 1):
        data = re.split(rb"\r\n|\r|\n", data, maxsplit=1)[1]
    return data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x,w,y\n1,5" disk,1\n2,6" disk,0\n', [1, 2]),
        ('x,w,y\n1,"a\n\nb",1\n\n2,"",0\n', [1, 2]),
        ('"x","w\nw",w,y\n1,a,b,1\n', [1]),
        ("x,w,y\n 1 ,a,1\n,b,0\n  ,c,0\nNA,d,1\n", [1, 0, 0, 0]),
        ("\n\nx,w,y\n\n1,a,1\n", [1]),
    ],
)
def test_csv_as_other_programs_write_it(tmp_path, text, expected):
    (tmp_path / "a.csv").write_text(text)
    source = sources.Source((str(tmp_path / "a.csv"),))
    assert sources.count(source) == len(expected)
    assert read(source) == expected


PLAIN = b"x,w,y\n1,a,1\n2,b,0\n"


def zstandard(data):
    return pa.compress(data, codec="zstd", asbytes=True)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst", "a"])
def test_compressed_files_are_known_by_their_bytes(tmp_path, pack, name):
    (tmp_path / name).write_bytes(pack(PLAIN))
    source = sources.Source((str(tmp_path / name),))
    assert sources.count(source) == 2
    assert read(source) == [1, 2]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard])
def test_a_damaged_compressed_file_is_named(tmp_path, pack):
    packed = pack(PLAIN * 1_000)
    (tmp_path / "a.csv").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(errors.InputError, match=r"a\.csv: it is compressed by \w+, and damaged"):
        attempt(sources.Source((str(tmp_path / "a.csv"),)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,w,y\n1,a,1\n".encode("utf-16"), "this is UTF-16; write it as UTF-8"),
        (b"PK\x03\x04 and more", "this is a ZIP archive, and no text; unpack it first"),
        (b"PAR1 and more", "this is a Parquet file, and no text"),
        (b"x;w;y\n1;a;1\n", "the header has semicolons and no commas"),
        (b"x,w,y\n1,a,1\n2\tb\t0\n", r"a\.csv:3: 1 field where 3 are expected; the line has tabs"),
        (
            b'x,w,y\n1,"a\nb",1\n2,"b,0\n3,c,1\n',
            r"a\.csv:4: a quoted field begins in this row and does not end",
        ),
        (b'x,w,y\n1,"a\nb",1\n2,b\n', r"a\.csv:4: 2 fields where 3 are expected"),
        (b'x,w,y\n1,"a\nb",1\ntwo,b,0\n', r"a\.csv:4: column 'x' holds 'two', not a number"),
        (b"x,w,y\n1,a,1\n2,\xe9,1\n", r"a\.csv:3: column 'w' is not UTF-8"),
        (b"x,x,w,y\n1,2,a,1\n", "the column 'x' is there 2 times"),
        (b"x,w,y\n1,a,1\n1e400,a,1\n", r"a\.csv:3: column 'x' holds inf, which is not finite"),
        (b"x,w,y\n1,a,1\n1e39,a,1\n", r"a\.csv:3: column 'x' holds 1e\+39, too large for a float of 32 bits"),
        (b"x,w,y\n1,a,1\n1,a,NA\n", r"a\.csv:3: column 'y' is the label and holds no value"),
    ],
)
def test_a_file_that_is_not_read_is_named_with_its_reason(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(errors.InputError, match=message):
        attempt(sources.Source((str(tmp_path / "a.csv"),)))


def test_a_mark_of_utf8_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + PLAIN)
    assert read(sources.Source((str(tmp_path / "a.csv"),))) == [1, 2]


def test_folders_as_spark_leaves_them(tmp_path):
    for name in ("day=1/part-0.parquet", "day=2/part-0.parquet"):
        (tmp_path / name).parent.mkdir()
        parquet(tmp_path / name, 3)
    for name in ("_SUCCESS", "_committed_1", "day=1/.part-0.parquet.crc"):
        (tmp_path / name).write_bytes(b"\x00")
    (tmp_path / "_temporary").mkdir()
    parquet(tmp_path / "_temporary" / "part-1.parquet", 3)
    for url in (tmp_path, f"{tmp_path}/", tmp_path / "*", tmp_path / "day=*", tmp_path / "*" / "part-*"):
        assert read(sources.Source((str(url),))) == [0, 1, 2] * 2
    csv(tmp_path / "_hidden.csv", ["x,w,y", "9,a,1"])
    assert read(sources.Source((f"{tmp_path}/_hidden*",))) == [9]
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.InputError, match="there is no file in this folder"):
        attempt(sources.Source((str(tmp_path / "empty"),)))


def test_an_empty_part_is_no_error(tmp_path):
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    paths[0].write_bytes(b"")
    csv(paths[1], ["x,w,y"])
    csv(paths[2], ["x,w,y", "1,a,1"])
    source = sources.Source(tuple(map(str, paths)))
    assert sources.rows(source, ENCODER.kinds()) == dict(zip(map(str, paths), (0, 0, 1), strict=True))
    assert read(source) == [1]


def test_names_that_a_terminal_would_act_on_are_quoted(tmp_path):
    path = tmp_path / "a\x1b[2J.csv"
    csv(path, ["x,w,y", "two,a,1"])
    with pytest.raises(errors.InputError) as caught:
        attempt(sources.Source((str(path),)))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, math.inf]), "row 2: column 'x' holds inf, which is not finite"),
        (pa.array(["1", "NA", "x"]), "row 3: column 'x' holds 'x', not a number"),
        (pa.array([b"1", b"\xff"]), r"row 2: column 'x' holds b'\\xff', not a text in UTF-8"),
        (pa.array([[1.0]]), "column 'x' is of type list"),
        (pa.array([0], pa.timestamp("s")), "column 'x' is of type timestamp"),
    ],
)
def test_a_column_of_parquet_that_holds_no_numbers(tmp_path, column, message):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"x": column}), path)
    with pytest.raises(errors.InputError, match=message):
        list(sources.chunks(sources.Source((str(path),)), str(path), {"x": "number"}))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3.0, None, math.nan, 2.0]), [3, -1, -1, 2]),
        (pa.array([3, None], pa.uint64()), [3, -1]),
        (pa.array(["3", "3.0", "+4", " NA ", ""]), [3, 3, 4, -1, -1]),
        (pa.array(["7", None]).dictionary_encode(), [7, -1]),
        (pa.array([True, False]), [1, 0]),
        (pa.array([decimal.Decimal("3.00")]), [3]),
        (pa.nulls(2), [-1, -1]),
    ],
)
def test_integers_out_of_parquet(tmp_path, column, expected):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"i": column}), path)
    (chunk,) = sources.chunks(sources.Source((str(path),)), str(path), {"i": "integer"})
    assert chunk.columns["i"].tolist() == expected


@pytest.mark.parametrize("value", [2.5, "2.5", 2.0**63, str(2**63), "1e3"])
def test_what_is_no_integer_is_named(tmp_path, value):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"i": [type(value)(1), value]}), path)
    with pytest.raises(errors.InputError, match=r"a\.parquet: row 2: column 'i' holds "):
        list(sources.chunks(sources.Source((str(path),)), str(path), {"i": "integer"}))
