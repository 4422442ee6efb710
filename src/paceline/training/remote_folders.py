"""Folders at any URL that fsspec understands, to which only whole files are written.

A file is written under another name and then renamed, so a reader of the folder never finds half a
file under its final name. Object stores need no such name: an object is there when all of it has arrived.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from paceline.training import connections, errors

_CHUNK_BYTES = 8 * 2**20
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oss"}
_NOT_WRITTEN = "it cannot be written"


class RemoteFolder:
    """A folder by URL.

    Args:
        url: the folder; it need not exist.
        error_type: the kind of the errors that its methods raise: the folder cannot be reached, read or
            written.
    """

    def __init__(self, url: str, error_type: type[errors.TrainingError]) -> None:
        self.url = url.rstrip("/")
        self._error_type = error_type
        self._system, self._path = connections.system_of(self.url, error_type)
        protocols = self._system.protocol
        self._is_object_store = not _OBJECT_STORES.isdisjoint(
            {protocols} if isinstance(protocols, str) else protocols
        )

    def names(self) -> list[str]:
        """Return the names of what is in the folder; none if there is no folder."""

        def listed() -> list[str]:
            self._system.invalidate_cache(self._path)
            try:
                return [PurePosixPath(path).name for path in self._system.ls(self._path, detail=False)]
            except FileNotFoundError:
                return []

        return self._retried(listed, refusal="it cannot be listed")

    def put(self, source: Path, name: str) -> None:
        """Copy a file of this machine into the folder; a file of that name is replaced."""
        final, temporary = self._names(name)

        def copy() -> None:
            if not self._is_object_store:
                self._system.makedirs(str(PurePosixPath(temporary).parent), exist_ok=True)
            with source.open("rb") as stream, self._system.open(temporary, "wb") as target:
                shutil.copyfileobj(stream, target, _CHUNK_BYTES)
            arrived, size = self._system.info(temporary)["size"], source.stat().st_size
            if arrived != size:
                raise OSError(f"{arrived} of {size} bytes arrived")
            if temporary != final:
                self._take(temporary, final, old)

        with self._undone(temporary if temporary != final else None), self._kept(final) as old:
            self._retried(copy, name, refusal=_NOT_WRITTEN)

    def put_folder(self, source: Path, last: str) -> None:
        """Make this folder a copy of one of this machine, in place of what is there.

        Args:
            source: the folder of this machine.
            last: the file without which the others mean nothing; in an object store it is written last.
        """
        files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
        files.sort(key=lambda path: str(path) == last)
        if self._is_object_store:
            self._retried(lambda: self._remove_path(self._path), refusal=_NOT_WRITTEN)
            for path in files:
                self.put(source / path, str(path))
            return
        beside = RemoteFolder(f"{self.url}.temp{uuid.uuid4().hex}", self._error_type)
        with beside._undone(beside._path, recursive=True), self._kept(self._path) as old:
            for path in files:
                beside.put(source / path, str(path))
            self._retried(lambda: self._take(beside._path, self._path, old), refusal=_NOT_WRITTEN)

    def get(self, name: str, target: Path) -> None:
        """Copy a file of the folder to this machine."""

        def copy() -> None:
            with self._system.open(f"{self._path}/{name}", "rb") as stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file, _CHUNK_BYTES)

        self._retried(copy, name)

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        return self._retried(lambda: bool(self._system.exists(f"{self._path}/{name}")))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        path = f"{self._path}/{name}"
        self._retried(lambda: self._remove_path(path), name, refusal="it cannot be removed")

    def _retried(
        self, action: Callable[[], connections.Answer], name: str = "", *, refusal: str | None = None
    ) -> connections.Answer:
        """Run an action on the folder, or on a file of it, as `connections.retried` does."""
        url = f"{self.url}/{name}" if name else self.url
        return connections.retried(url, action, error_type=self._error_type, refusal=refusal)

    def _names(self, name: str) -> tuple[str, str]:
        """Return the final path of a file, and that under which it is written."""
        final = f"{self._path}/{name}"
        if self._is_object_store:
            return final, final
        return final, _beside(final)

    def _take(self, new: str, path: str, old: str) -> None:
        """Rename a file or folder to a path; what is there has the name ``old`` meanwhile.

        It may be tried again, whatever an earlier try has done.
        """
        if self._system.exists(new):  # Else an earlier try has renamed it, and only its answer was lost.
            if self._system.exists(old):
                self._remove_path(path)
            elif self._system.exists(path):
                self._system.mv(path, old)
            self._system.mv(new, path)
        self._remove_path(old)

    @contextlib.contextmanager
    def _kept(self, path: str) -> Iterator[str]:
        """Yield another name for what is at a path, which gets its own back if nothing takes its place."""
        old = _beside(path)
        try:
            yield old
        except errors.TrainingError:
            with contextlib.suppress(OSError, RuntimeError):
                if self._system.exists(old) and not self._system.exists(path):
                    self._system.mv(old, path)
            raise

    def _remove_path(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self._system.exists(path):
                self._system.rm(path, recursive=True)

    @contextlib.contextmanager
    def _undone(self, path: str | None, *, recursive: bool = False) -> Iterator[None]:
        """Remove what was begun if it does not become whole, unless the place is gone for that, too."""
        try:
            yield
        except errors.TrainingError:
            if path is not None:
                with contextlib.suppress(OSError, RuntimeError):
                    self._system.rm(path, recursive=recursive)
            raise


def _beside(path: str) -> str:
    """Return a new, hidden name beside a path."""
    pure = PurePosixPath(path)
    return str(pure.with_name(f".{pure.name}.temp{uuid.uuid4().hex}"))
