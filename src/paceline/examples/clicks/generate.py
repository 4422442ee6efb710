"""Writes click logs like Criteo's, drawn from a planted model.

A row has a label, 13 counts `i1..i13` and categorical ids `c1..`.

    python -m paceline.examples.clicks.generate --output clicks-data

A data set is a folder with `train-*.parquet` (or csv), `evaluation.parquet`, `probabilities.npy` (the true
ones of the evaluation rows) and `truth.json` (parameters and best AUC). It is written beside its place and
renamed when whole, so a folder that exists is complete. The same parameters and seed give the same rows.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from paceline.examples.clicks import planted
from paceline.training import evaluations

TABLES = (
    500_000, 100_000, 50_000, 20_000, 10_000, 5_000, 3_000, 2_000, 1_500, 1_000, 800, 600, 500,
    400, 300, 200, 150, 100, 80, 60, 50, 40, 30, 25, 20, 10,
)  # fmt: skip

ROW_GROUP_ROWS = 32_768

Progress = Callable[[int, int], None]
"""Called with the files done and the files to do."""


class DataSetError(Exception):
    """A folder cannot be used as a data set; the message says why and what to do."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a data set, which determine its content.

    They are rows, sizes of the categorical tables, the exponent of their Zipf distribution, and the seed.
    """

    train_rows: int = 1_500_000
    evaluation_rows: int = 200_000
    train_files: int = 8
    tables: tuple[int, ...] = TABLES
    zipf: float = 1.1
    seed: int = 0
    format: Literal["parquet", "csv"] = "parquet"


@dataclass(frozen=True)
class DataSet:
    """A complete data set on disk.

    `best_auc` is the expected AUC of the best possible model on the evaluation rows (see `planted.best_auc`).
    `drawn_auc` is the AUC of the true probabilities on the labels that were actually drawn.
    """

    folder: Path
    parameters: Parameters
    best_auc: float
    drawn_auc: float
    click_rate: float

    @property
    def train_pattern(self) -> str:
        """A pattern that matches the training files."""
        return str(self.folder / f"train-*.{self.parameters.format}")

    @property
    def evaluation_file(self) -> str:
        """The evaluation file."""
        return str(self.folder / f"evaluation.{self.parameters.format}")


def load(folder: Path) -> DataSet:
    """Opens a data set.

    Raises:
        DataSetError: the folder holds no data set.
    """
    try:
        truth = json.loads((folder / "truth.json").read_text())
        raw = truth["parameters"]
        return DataSet(
            folder=folder,
            parameters=Parameters(**{**raw, "tables": tuple(raw["tables"])}),
            best_auc=truth["best_auc"],
            drawn_auc=truth["drawn_auc"],
            click_rate=truth["click_rate"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataSetError(
            f"{folder} holds no click data ({type(error).__name__}: {error}); "
            f"make some: python -m paceline.examples.clicks.generate --output {folder}"
        ) from error


def opened(folder: Path, parameters: Parameters | None = None) -> DataSet:
    """Opens a data set, and makes it if its folder does not exist yet.

    If several processes call this at the same time, one makes the data set and the others wait.

    Raises:
        DataSetError: the folder holds something else.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent):
            if not folder.exists():
                parameters = parameters or Parameters()
                print(f"making {parameters.train_rows:,} rows of click data in {folder}", flush=True)
                generate(folder, parameters)
    return load(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Locks a folder exclusively; on a file system without such locks each process makes the data itself."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def generate(folder: Path, parameters: Parameters, progress: Progress = lambda done, total: None) -> DataSet:
    """Writes a data set, or opens the existing data set if it has the same parameters.

    Raises:
        DataSetError: the folder holds something else.
    """
    if folder.exists() and any(folder.iterdir()):
        return _existing(folder, parameters)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        temporary.chmod(0o755)
        _write(temporary, parameters, progress)
        try:
            os.rename(temporary, folder)  # replaces an empty folder, fails if another process was first
        except OSError:
            return _existing(folder, parameters)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return load(folder)


def _existing(folder: Path, parameters: Parameters) -> DataSet:
    found = load(folder)
    if found.parameters != parameters:
        raise DataSetError(
            f"{folder} holds click data of other parameters ({found.parameters}); "
            "choose another folder or delete it"
        )
    return found


def _write(folder: Path, parameters: Parameters, progress: Progress) -> None:
    model = planted.Planted(parameters.tables, parameters.zipf, parameters.seed)
    files = parameters.train_files
    for i in range(files):
        rows = parameters.train_rows // files + (i < parameters.train_rows % files)
        drawn = model.draw(np.random.default_rng([parameters.seed, 2, i]), rows)
        _write_file(folder / f"train-{i:03d}.{parameters.format}", drawn)
        progress(i + 1, files + 1)
    drawn = model.draw(np.random.default_rng([parameters.seed, 3]), parameters.evaluation_rows)
    _write_file(folder / f"evaluation.{parameters.format}", drawn)
    np.save(folder / "probabilities.npy", drawn.probabilities)
    truth: dict[str, Any] = {
        "parameters": asdict(parameters),
        "best_auc": planted.best_auc(drawn.probabilities),
        "drawn_auc": evaluations.auc(drawn.labels, drawn.probabilities),
        "click_rate": float(drawn.labels.mean()),
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n")
    progress(files + 1, files + 1)


def _write_file(path: Path, drawn: planted.Rows) -> None:
    columns = {"label": drawn.labels}
    columns |= {f"i{j + 1}": drawn.counts[:, j].astype(np.int32) for j in range(drawn.counts.shape[1])}
    columns |= {f"c{f + 1}": drawn.ids[:, f].astype(np.int32) for f in range(drawn.ids.shape[1])}
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        # Small row groups, as in real logs: over a network the first rows arrive early, not with the last
        # ones.
        pyarrow.parquet.write_table(table, path, row_group_size=ROW_GROUP_ROWS)


def _show(done: int, total: int) -> None:
    """Prints the progress; on a terminal, on one line."""
    text = f"making click data: {done} of {total} files"
    if sys.stdout.isatty():
        print(f"\r{text}", end="\n" if done == total else "", flush=True)
    else:
        print(text, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Writes a data set and prints the best AUC that is possible on it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given = Parameters()
    parser.add_argument("--output", type=Path, default=Path("clicks-data"), help="folder to make")
    parser.add_argument("--train-rows", type=int, default=given.train_rows)
    parser.add_argument("--evaluation-rows", type=int, default=given.evaluation_rows)
    parser.add_argument("--train-files", type=int, default=given.train_files)
    parser.add_argument("--tables", type=int, nargs="+", default=list(TABLES), help="rows of each table")
    parser.add_argument("--largest-table", type=int, help="rows of the first table, in place of those")
    parser.add_argument("--zipf", type=float, default=given.zipf)
    parser.add_argument("--seed", type=int, default=given.seed)
    parser.add_argument("--format", choices=("parquet", "csv"), default=given.format)
    options = vars(parser.parse_args(arguments))
    folder = options.pop("output")
    first, *others = options.pop("tables")
    largest = options.pop("largest_table") or first
    parameters = replace(given, **options, tables=(largest, *others))
    try:
        data = generate(folder, parameters, _show)
    except DataSetError as error:
        sys.exit(f"error: {error}")
    print(
        f"{folder}: {data.parameters.train_rows:,} rows; best possible AUC {data.best_auc:.4f} "
        f"({data.drawn_auc:.4f} on the drawn labels), click rate {data.click_rate:.3f}"
    )


if __name__ == "__main__":
    main()
