"""Learns to predict clicks, over parameter servers.

The job file beside it runs it: `paceline run job.yaml`.

Every replica of the job runs this script: parameter servers, workers and a chief alike. `training.run` reads
from the environment which replica it is, and does its part. Without a job the script trains by itself:

    TF_CONFIG='{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}' \
        python train.py --data clicks-data

To train on your own data, change two things: the features and the model in `model`, and the files that
`main` passes to `training.run`. Settings below `training` in the job file need no change here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paceline import training
from paceline.examples.clicks import generate, planted
from paceline.training import features


def model(tables: tuple[int, ...]) -> training.WideAndDeep:
    """Returns Wide & Deep for tables of these sizes.

    Every id is in both parts; crosses of the small last tables are in the wide part.
    """
    ids = tuple(features.Identity(f"c{f + 1}", rows) for f, rows in enumerate(tables))
    last = ids[-6:]
    crosses = tuple(features.Cross((one, other)) for one, other in zip(last[::2], last[1::2], strict=False))
    numbers = tuple(
        features.Numeric(f"i{j + 1}", mean=1.6, deviation=1.0, log=True) for j in range(planted.NUMBERS)
    )
    return training.WideAndDeep(
        features.FeatureSet(numeric=numbers, categorical=ids + crosses, label=features.Label("label")),
        deep=ids,
    )


def main(arguments: list[str] | None = None) -> None:
    """Trains this replica's part, and prints how close the chief came to the best possible AUC."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path("clicks-data"), help="folder of click data; it is made if need be"
    )
    options = parser.parse_args(arguments)
    try:
        data = generate.opened(options.data)
        result = training.run(
            model(data.parameters.tables),
            train=training.Source((data.train_pattern,)),
            evaluation=training.Source((data.evaluation_file,)),
        )
    except (training.TrainingError, generate.DataSetError) as error:
        sys.exit(f"error: {error}")
    if result is not None and result.auc is not None:
        print(
            f"AUC {result.auc:.4f}; the best possible is {data.best_auc:.4f} ({data.drawn_auc:.4f} as drawn)"
        )


if __name__ == "__main__":
    main()
