"""Container images, made without a registry and without a builder.

`make` makes one with Python, Paceline and TensorFlow: its first layer is Debian
(``tests/kubernetes/fetch-debian``), its second the packages of this environment. `make_agent` makes the image
of the agent's files.

    python tests/support/images.py NAME OUT.tar    then: ctr -n k8s.io images import OUT.tar
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

DEBIAN = "bookworm"
#: Debian's interpreter, which has to be of the version that the packages are for.
VERSION = (3, 11)
EXTRAS = ("training", "kubernetes")
_THERE = f"usr/local/lib/python{VERSION[0]}.{VERSION[1]}/dist-packages"
_HERE = Path(__file__).parents[2] / "src"
#: Programs of the environment's own folder, and headers for compilers: a fifth of what TensorFlow has.
_CONTAINERFILE = _HERE.with_name("Containerfile")
_LEFT_OUT = {"..", "include"}
#: As pip writes it: processes that it spawns import it.
_PROGRAM = b"""#!/usr/bin/python3
import sys
from paceline.surfaces.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


def debian() -> Path:
    """Return where Debian's layer is, if it was fetched."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "paceline-images" / f"{DEBIAN}.tar"


def make(name: str, out: Path, *, extras: tuple[str, ...] = EXTRAS, source: Path = _HERE) -> None:
    """Write the image as an archive (that of ``docker save``).

    Args:
        name: the image's name with its tag.
        out: the archive.
        extras: those of Paceline whose packages are in it.
        source: the folder with Paceline's own package.

    Raises:
        OSError: nothing can be written, Debian was not fetched, or this is another Python than Debian's.
    """
    if sys.version_info[:2] != VERSION:
        raise OSError(f"packages for Python {sys.version.split()[0]} do not run on Debian's {VERSION}")
    packages = out.with_suffix(".packages.tar")
    _layer(packages, lambda layer: _add_packages(layer, extras, source))
    _archive(name, [debian(), packages], out)
    packages.unlink()


def make_agent(name: str, out: Path) -> None:
    """Write the image of the agent's files, with what the Containerfile copies into it, as an archive."""
    stage = _CONTAINERFILE.read_text().partition("FROM scratch AS agent\n")[2].partition("\nFROM ")[0]
    copies = [line.split()[1:] for line in stage.splitlines() if line.startswith("COPY ")]

    def add_files(layer: tarfile.TarFile) -> None:
        for source, target in copies:
            path = _CONTAINERFILE.parent / source
            if path.is_dir():
                _add_tree(layer, path, target.lstrip("/"))
            else:
                layer.add(path, path.name, filter=_anonymous)

    files = out.with_suffix(".files.tar")
    _layer(files, add_files)
    _archive(name, [files], out)
    files.unlink()


def _add_packages(layer: tarfile.TarFile, extras: tuple[str, ...], source: Path) -> None:
    for package in sorted(_needed("paceline", extras)):
        found = importlib.metadata.distribution(package)
        for file in sorted(found.files or (), key=str):
            path = Path(str(file.locate()))
            if not _LEFT_OUT & set(file.parts) and path.is_file():
                layer.add(path, f"{_THERE}/{file}", filter=_anonymous)
    _add_tree(layer, source, _THERE)
    python = tarfile.TarInfo("usr/local/bin/python")
    python.type, python.linkname = tarfile.SYMTYPE, "/usr/bin/python3"
    layer.addfile(python)
    program = tarfile.TarInfo("usr/local/bin/paceline")
    program.mode, program.size = 0o755, len(_PROGRAM)
    layer.addfile(program, io.BytesIO(_PROGRAM))


def _needed(package: str, extras: tuple[str, ...] = ()) -> set[str]:
    """Return the distributions that a package needs, itself included."""
    found: dict[str, set[str]] = {}

    def add(name: str, wanted: tuple[str, ...]) -> None:
        new = {*wanted, ""} - found.setdefault(name.lower(), set())
        if not new:
            return
        found[name.lower()] |= new
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": each}) for each in new):
                add(requirement.name, tuple(requirement.extras))

    add(package, extras)
    return set(found)


def _add_tree(layer: tarfile.TarFile, folder: Path, under: str) -> None:
    for path in sorted(folder.rglob("*")):
        if "__pycache__" not in path.parts:
            layer.add(path, f"{under}/{path.relative_to(folder)}", recursive=False, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out what differs from machine to machine."""
    member.mtime = 0
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _layer(out: Path, fill: Callable[[tarfile.TarFile], None]) -> None:
    with tarfile.open(out, "w") as layer:
        fill(layer)


def _archive(name: str, layers: list[Path], out: Path) -> None:
    digests = [_digest(layer) for layer in layers]
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["python3"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        },
        sort_keys=True,
    ).encode()
    called = f"{hashlib.sha256(config).hexdigest()}.json"
    parts = [f"{digest}.tar" for digest in digests]
    manifest = json.dumps([{"Config": called, "RepoTags": [name], "Layers": parts}]).encode()
    with _replacing(out) as half, tarfile.open(half, "w") as archive:
        for member, content in ((called, config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for member, layer in zip(parts, layers, strict=True):
            archive.add(layer, member, filter=_anonymous)


@contextlib.contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    half = out.with_suffix(".half")
    yield half
    half.rename(out)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
