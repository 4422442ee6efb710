"""The files of UCI Census Income (Adult): found, or downloaded and checked."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
from pathlib import Path

from paceline import training
from paceline.training import errors

ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)


def sources(folder: Path) -> tuple[training.Source, training.Source]:
    """The training and the test file, downloaded to `folder` where they are missing.

    adult.test starts with a line that is not data.

    Raises:
        InputError: a file is not the published one, or cannot be downloaded.
    """
    for name in CHECKSUMS:
        _ensure(folder / name)
    return (
        training.Source((str(folder / "adult.data"),), format="csv", column_names=COLUMNS),
        training.Source((str(folder / "adult.test"),), format="csv", column_names=COLUMNS, skip_rows=1),
    )


def _ensure(path: Path) -> None:
    if not path.exists():
        _download(path)
    _check(path.read_bytes(), path.name, str(path))


def _check(content: bytes, name: str, place: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != CHECKSUMS[name]:
        raise errors.InputError(
            f"{place}: this is not UCI's {name} (SHA-256 {found}, expected {CHECKSUMS[name]}); "
            "delete it to download anew"
        )


def _download(path: Path) -> None:
    """Downloads to a temporary name and renames, so that several replicas may do so at once."""
    url = ARCHIVE + path.name
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
    except OSError as error:
        raise errors.InputError(
            f"{path} does not exist and {url} cannot be downloaded ({error}); put the file there by hand"
        ) from error
    _check(content, path.name, url)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.replace(temporary, path)
