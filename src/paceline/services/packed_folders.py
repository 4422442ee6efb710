"""Packs a folder of code to be shipped with its job: the same content always gives the same bytes."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import InvalidInput, NotFound
from paceline.model import quantities
from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering.codes import MAX_PACKED_BYTES

#: A larger folder is not even packed: it could not become small enough.
MAX_BYTES = 64 << 20
MAX_FILES = 10_000
#: Folders that belong to tools and not to the code.
LEFT_OUT = (".git", ".hg", ".svn", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache")
_SHOWN = 3


def of_job(spec: JobSpec, base: Path) -> bytes | None:
    """Return the packed folder that is shipped with a job; None if the job has none.

    Args:
        spec: the job.
        base: the folder of its job file.

    Raises:
        NotFound: the folder does not exist.
        InvalidInput: the folder is empty or too large, or holds something that cannot be packed.
    """
    if spec.code is None or spec.code.folder is None:
        return None
    return pack(base / spec.code.folder)


def pack(folder: Path) -> bytes:
    """Return a folder as a tar.gz, without the files that tools keep in it.

    Owners and times are left out; of file modes, only the executable bit is kept.

    Raises:
        NotFound: the folder does not exist.
        InvalidInput: the folder is empty or too large, or holds something that cannot be packed.
    """
    if not folder.is_dir():
        raise NotFound(
            f"{folder}: there is no such folder of code", "spec.code.folder starts at the job file"
        )
    file_names = sorted(_files(folder))
    if not file_names:
        raise InvalidInput(f"{folder}: there is no file in it", "see spec.code.folder")
    sizes = {name: (folder / name).lstat().st_size for name in file_names}
    if sum(sizes.values()) > MAX_BYTES:
        raise _too_large(folder, sizes, f"{quantities.format_bytes(sum(sizes.values()))} unpacked")
    packed = io.BytesIO()
    try:
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=9, filename="") as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in file_names:
                _add(tar, folder, name)
    except OSError as error:
        raise InvalidInput(f"{folder}: it cannot be packed: {error}") from error
    if packed.tell() > MAX_PACKED_BYTES:
        raise _too_large(folder, sizes, f"{quantities.format_bytes(packed.tell())} packed")
    return packed.getvalue()


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of all files and links in a folder."""
    count = 0
    for above, names, files in os.walk(folder):
        for name in [each for each in names if (Path(above) / each).is_symlink()]:
            files.append(name)
            names.remove(name)
        names[:] = [each for each in names if each not in LEFT_OUT]
        for name in files:
            count += 1
            if count > MAX_FILES:
                raise InvalidInput(f"{folder}: it has more than {MAX_FILES} files", _HINT)
            yield str((Path(above) / name).relative_to(folder))


def _add(tar: tarfile.TarFile, folder: Path, name: str) -> None:
    path = folder / name
    status = path.lstat()
    member = tarfile.TarInfo(name)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        if target.startswith("/") or not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidInput(
                f"{path}: the link leads out of the folder, to {target}", "put a copy in its place"
            )
        member.type, member.linkname = tarfile.SYMTYPE, target
        tar.addfile(member)
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as file:
            member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            member.size = os.fstat(file.fileno()).st_size
            tar.addfile(member, file)
    else:
        raise InvalidInput(f"{path}: this is neither a file nor a folder", "remove it")


_HINT = "Put only code there; or bring it by spec.code.git, by spec.code.archive, or in the image."


def _too_large(folder: Path, sizes: dict[str, int], size: str) -> InvalidInput:
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_SHOWN]
    named = ", ".join(f"{name} ({quantities.format_bytes(sizes[name])})" for name in largest)
    limit = quantities.format_bytes(MAX_PACKED_BYTES)
    return InvalidInput(
        f"{folder}: it takes {size}, and {limit} packed is the limit; the largest are {named}", _HINT
    )
