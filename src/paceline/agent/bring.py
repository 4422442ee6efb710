"""Copies the agent into a folder with everything it needs to run, so that it runs in any container image.

An init container runs ``python3 -m paceline.agent.bring FOLDER``; beside the user's program, the command

    FOLDER/lib/ld.so --library-path FOLDER/lib FOLDER/bin/python3 -I -S FOLDER/agent.py CONFIG...

then needs no Python, C library or shell from the image, only the same processor architecture.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

_NOT_NEEDED = (
    "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages",
    "dist-packages", "__pycache__", "config-*", "pydoc_data",
)  # fmt: skip
_LOADER = re.compile(r"ld-(linux|musl)[\w-]*\.so(\.\d+)?")


def bring(folder: Path) -> None:
    """Copy the agent, the instrumentation, this interpreter, its standard library and its shared libraries.

    The shared libraries are those that this process has loaded.

    Raises:
        OSError: a file cannot be copied.
    """
    import ctypes  # The agent's only lazy import that loads a shared library.

    # glibc loads this library when a thread ends itself, as Python's threads do that still run when Python
    # exits. Without it the process aborts, and the exit code of the command is lost. Other C libraries do not
    # need it.
    with contextlib.suppress(OSError):
        ctypes.CDLL("libgcc_s.so.1")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = folder / "lib" / version
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        library,
        ignore=shutil.ignore_patterns(*_NOT_NEEDED),
        dirs_exist_ok=True,
    )
    (folder / "bin").mkdir(exist_ok=True)
    shutil.copy("/proc/self/exe", folder / "bin" / "python3")
    for path in _loaded():
        if library.name not in path.parts:
            first, *others = (folder / "lib" / name for name in _names(path))
            shutil.copy(path, first)
            for other in others:
                other.unlink(missing_ok=True)
                os.link(first, other)
    here = Path(__file__).parent
    shutil.copy(here / "agent.py", folder / "agent.py")
    for package in (here / "paceline_agent", here.with_name("instrumentation")):
        shutil.copytree(
            package,
            folder / package.name,
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )


def _names(path: Path) -> list[str]:
    """Return the names by which a library may be requested, such as ``libz.so.1`` for ``libz.so.1.2.13``."""
    if _LOADER.fullmatch(path.name):
        return ["ld.so", path.name]
    stem, _, version = path.name.partition(".so")
    parts = version.split(".")
    return [f"{stem}.so{'.'.join(parts[:count])}" for count in range(1, len(parts) + 1)]


def _loaded() -> set[Path]:
    """Return the shared libraries that are mapped into this process."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if line.count("/")}
    return {Path(path) for path in paths if re.search(r"\.so(\.\d+)*$", path)}


def main() -> None:
    """Copy the agent into the folder that is the first argument."""
    folder = Path(sys.argv[1])
    os.umask(0o022)
    bring(folder)


if __name__ == "__main__":
    main()
