"""Whatever an archive holds: it stays in its folder and within its limits, or it is refused."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.agent import unpacking
from paceline.agent.unpacking import ArchiveError


def tar_of(*members: tuple[str, object], pack: str = "") -> bytes:
    """A tar of names and contents: bytes, None for a folder, or a type and a link's target."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, bytes):
                info.size, info.mode = len(content), 0o755 if name.endswith(".sh") else 0o640
            else:
                info.type, info.linkname = content  # type: ignore[misc]
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return gzip.compress(made.getvalue(), mtime=0) if pack else made.getvalue()


def zip_of(*members: tuple[str, bytes, int]) -> bytes:
    """A zip of (name, content, mode)."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, content)
    return made.getvalue()


def symlink(target: str) -> tuple[bytes, str]:
    return tarfile.SYMTYPE, target


def hardlink(target: str) -> tuple[bytes, str]:
    return tarfile.LNKTYPE, target


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[..., Path]:
    def unpacked(data: bytes, **limits: int) -> Path:
        archive, folder = tmp_path / "archive", tmp_path / "folder"
        archive.write_bytes(data)
        folder.mkdir(exist_ok=True)
        unpacking.unpack(archive, folder, **limits)
        return folder

    return unpacked


CODE = (("./train.py", b"print()"), ("pkg", None), ("pkg/run.sh", b"#!"), ("deep/er/x", b""))


@pytest.mark.parametrize("pack", ["", "gz"])
def test_files_folders_and_links_of_a_tar(unpack: Callable[..., Path], pack: str) -> None:
    links = (("pkg/again", hardlink("train.py")), ("pkg/up", symlink("../train.py")), ("all", symlink(".")))
    folder = unpack(tar_of(*CODE, *links, pack=pack))
    assert (folder / "train.py").read_bytes() == (folder / "pkg/up").read_bytes() == b"print()"
    assert (folder / "pkg/again").read_bytes() == b"print()"
    assert (folder / "all/deep/er/x").read_bytes() == b""
    assert stat.S_IMODE((folder / "pkg/run.sh").stat().st_mode) == 0o777
    assert stat.S_IMODE((folder / "train.py").stat().st_mode) == 0o666
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == 0o777


def test_files_folders_and_links_of_a_zip(unpack: Callable[..., Path]) -> None:
    folder = unpack(
        zip_of(
            ("a/train.py", b"print()", 0o100644),
            ("b/", b"", 0o40755),
            ("b/run", b"#!", 0o100755),
            ("b/link", b"../a/train.py", 0o120777),
            ("plain", b"x", 0),
        )
    )
    assert (folder / "b/link").read_bytes() == b"print()"
    assert stat.S_IMODE((folder / "b/run").stat().st_mode) == 0o777
    assert stat.S_IMODE((folder / "plain").stat().st_mode) == 0o666


OUT = "leads out of the archive"


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([("/etc/x", b"")], OUT),
        ([("../x", b"")], OUT),
        ([("a/../../x", b"")], OUT),
        ([("a", symlink("/etc/passwd"))], OUT),
        ([("a", symlink("../x"))], OUT),
        ([("a/b", symlink("../../x"))], OUT),
        ([("f", b""), ("a", symlink(""))], OUT),
        # Each link is innocent by its words; one over the other leads out.
        (
            [
                ("sub/dir/f", b""),
                ("x", symlink("sub/dir")),
                ("sub/dir/up", symlink("../..")),
                ("y", symlink("x/up/..")),
            ],
            OUT,
        ),
        (
            [
                ("sub/dir/f", b""),
                ("x", symlink("sub/dir")),
                ("sub/dir/up", symlink("../..")),
                ("y", symlink("x/up/../no/such")),
            ],
            OUT,
        ),
        ([("a", symlink("b")), ("b", symlink("a")), ("f", b"")], "symbolic links"),
        # A file through a link would land wherever that leads.
        ([("a", symlink(".")), ("a/x", b"")], "twice"),
        ([("a", symlink("b")), ("a", b"")], "twice"),
        ([("a", b"1"), ("a", b"2")], "twice"),
        ([("a", b"1"), ("a/b", b"2")], "twice"),
        ([("a", hardlink("/etc/passwd"))], OUT),
        ([("a", hardlink("missing"))], "cannot be unpacked"),
        ([("s", symlink("f")), ("f", b""), ("a", hardlink("s"))], "cannot be unpacked"),
        ([("null", (tarfile.CHRTYPE, ""))], "device or a pipe"),
        ([("pipe", (tarfile.FIFOTYPE, ""))], "device or a pipe"),
        ([("x" * 300, b"")], "cannot be unpacked: .*too long"),
        ([("only", None)], "no file in it"),
        ([], "no file in it"),
    ],
)
def test_what_a_tar_must_not_hold(
    unpack: Callable[..., Path], tmp_path: Path, members: list[tuple[str, object]], says: str
) -> None:
    with pytest.raises(ArchiveError, match=says):
        unpack(tar_of(*members))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["archive", "folder"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([("../x", b"", 0)], OUT),
        ([("/x", b"", 0)], OUT),
        ([("a", b"/etc/passwd", 0o120777)], OUT),
        ([("a", b"x" * 5000, 0o120777)], OUT),
        ([("dev", b"", 0o20644)], "device or a pipe"),
    ],
)
def test_what_a_zip_must_not_hold(
    unpack: Callable[..., Path], members: list[tuple[str, bytes, int]], says: str
) -> None:
    with pytest.raises(ArchiveError, match=says):
        unpack(zip_of(*members))


def test_an_encrypted_zip_is_refused(unpack: Callable[..., Path]) -> None:
    data = bytearray(zip_of(("a", b"secret", 0)))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ArchiveError, match="encrypted"):
        unpack(bytes(data))


MIB = 1 << 20


@pytest.mark.parametrize(
    "data",
    [
        tar_of(("zeros", bytes(3 * MIB)), pack="gz"),
        tar_of(("zeros", bytes(3 * MIB))),
        tar_of(("zeros", bytes(MIB)), *((f"again{i}", hardlink("zeros")) for i in range(3))),
        zip_of(("zeros", bytes(3 * MIB), 0)),
        zip_of(*((f"zeros{i}", bytes(MIB), 0) for i in range(3))),
        gzip.compress(bytes(64 * MIB), mtime=0),
    ],
)
def test_bombs_are_refused(unpack: Callable[..., Path], tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ArchiveError, match=r"more than \d+ bytes"):
        unpack(data, max_bytes=2 * MIB, max_files=1000)
    assert sum(each.stat().st_size for each in (tmp_path / "folder").iterdir()) <= 2 * MIB


def test_a_zip_that_lies_about_its_size_is_refused(unpack: Callable[..., Path]) -> None:
    data = bytearray(zip_of(("zeros", bytes(3 * MIB), 0)))
    size = (3 * MIB).to_bytes(4, "little")
    for at in (data.index(size), data.rindex(size)):
        data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(ArchiveError):
        unpack(bytes(data), max_bytes=2 * MIB)


@pytest.mark.parametrize(
    "data",
    [
        tar_of(*((f"f{i}", b"") for i in range(200))),
        tar_of(*((f"d{i}", None) for i in range(200))),
        tar_of(*((f"l{i}", symlink(".")) for i in range(200))),
        tar_of(("/".join("a" * 200), None)),
        zip_of(*((f"f{i}", b"", 0) for i in range(200))),
    ],
)
def test_too_many_files_are_refused(unpack: Callable[..., Path], data: bytes) -> None:
    with pytest.raises(ArchiveError, match="more than 100 files"):
        unpack(data, max_files=100)


def wide(data: bytes) -> bytes:
    """Return an archive with the end that those beyond 4 GiB have."""
    end = data.rindex(b"PK\5\6")
    count, size, offset = struct.unpack_from("<HLL", data, end + 10)
    record = struct.pack("<4sQHHLLQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    narrow = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:end] + record + locator + narrow


def commented(data: bytes) -> bytes:
    """Return an archive with a comment behind its end."""
    return data[:-2] + b"\7\0comment"


@pytest.mark.parametrize("end", [bytes, wide, commented], ids=["plain", "wide", "commented"])
def test_a_zip_whose_list_alone_is_too_long_is_not_listed(
    unpack: Callable[..., Path], end: Callable[[bytes], bytes]
) -> None:
    """A gigabyte of names is 10 GB of the standard library's objects before the first file is seen."""
    few = zip_of(*((f"{i:0250}", b"", 0) for i in range(3)))
    assert len(list(unpack(end(few), max_files=100).iterdir())) == 3
    many = zip_of(*((f"{i:0250}", b"", 0) for i in range(5000)))
    with pytest.raises(ArchiveError, match=r"lists too many files: the list alone has 1,\d{3},\d{3} bytes"):
        unpack(end(many), max_files=100)


def field(number: int, width: int = 12) -> bytes:
    return number.to_bytes(width, "big", signed=True) if number < 0 else b"\x80" + number.to_bytes(11, "big")


PLAIN, LONG_NAME, EXTENDED = tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE


@pytest.mark.parametrize(
    ("kind", "size"),
    [(kind, size) for kind in (PLAIN, LONG_NAME, EXTENDED) for size in (-1, -512, -1024, 1 << 40)]
    + [(tarfile.DIRTYPE, -512)],
)
def test_headers_that_lie_about_sizes(unpack: Callable[..., Path], kind: bytes, size: int) -> None:
    """A negative size led into an endless loop, a huge one of a header into all memory (CVE-2025-8194)."""
    info = tarfile.TarInfo("f")
    info.type = kind
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = field(size)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    good = tar_of(("first", b"x"))[:1024]
    with pytest.raises(ArchiveError):
        unpack(good + bytes(header) + bytes(4096))


def test_chained_headers_end(unpack: Callable[..., Path]) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 4
    block = info.tobuf(tarfile.GNU_FORMAT) + b"abc\0" + bytes(508)
    with pytest.raises(ArchiveError):
        unpack(block * 5000)


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c.sh"]), min_size=1, max_size=4).map("/".join)
CONTENTS = st.one_of(
    st.none(), st.binary(max_size=20), NAMES.map(symlink), NAMES.map(hardlink),
    st.sampled_from(["/", "/etc", "a/../.."]).map(symlink),
)  # fmt: skip


def everything_below(folder: Path) -> list[Path]:
    return [Path(above) / name for above, names, files in os.walk(folder) for name in (*names, *files)]


def check(data: bytes) -> None:
    """Unpack into a folder beside a file that must stay as it is; nothing leads out of it afterwards."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        (root / "beside").write_text("mine")
        (root / "archive").write_bytes(data)
        folder = root / "folder"
        folder.mkdir()
        try:
            unpacking.unpack(root / "archive", folder, max_bytes=100_000, max_files=200)
        except ArchiveError:
            return
        finally:
            assert (root / "beside").read_text() == "mine"
            assert sorted(each.name for each in root.iterdir()) == ["archive", "beside", "folder"]
        for each in everything_below(folder):
            assert each.resolve().is_relative_to(folder)
            assert each.is_symlink() or stat.S_IFMT(each.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR)


@given(st.lists(st.tuples(NAMES, CONTENTS), max_size=8), st.sampled_from(["", "gz"]))
@settings(max_examples=examples(150))
def test_nothing_leads_out_of_any_tar(members: list[tuple[str, object]], pack: str) -> None:
    check(tar_of(*members, pack=pack))


GOOD = (
    tar_of(*CODE, ("l", symlink("train.py")), ("h", hardlink("train.py"))),
    tar_of(("long/" * 30 + "name", b"x"), ("ü" * 60, b"y")),
    zip_of(("a/train.py", b"print()" * 50, 0o100644), ("l", b"a", 0o120777)),
)


@given(st.sampled_from(GOOD), st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=examples(200))
def test_damaged_archives_are_unpacked_or_refused(good: bytes, seed: int, damages: int) -> None:
    chance, data = random.Random(seed), bytearray(good)
    for _ in range(damages):
        match chance.randrange(3):
            case 0:
                data[chance.randrange(len(data))] = chance.randrange(256)
            case 1:
                at = chance.randrange(len(data))
                data[at : at + chance.randrange(600)] = bytes(chance.randrange(600))
            case _:
                del data[chance.randrange(len(data)) :]
        if not data:
            break
    check(bytes(data))
