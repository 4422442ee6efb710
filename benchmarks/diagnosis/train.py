"""The script of the corpus: trains a model on click data, with what scripts do wrong when it is told to.

``python -m benchmarks.diagnosis.train --model NAME --data FOLDER`` and the options of `mistakes`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.diagnosis import mistakes, servers
from paceline import training


def model(name: str, known: training.WideAndDeep) -> training.Model:
    """Return a model of a name over the features of Wide & Deep on clicks."""
    from paceline.training import features

    if name == "wide-deep":
        return known
    own = features.FeatureSet(
        numeric=known.features.numeric, categorical=known.deep or (), label=known.features.label
    )
    return training.DeepFM(own) if name == "deepfm" else training.DLRM(own)


def main(arguments: list[str] | None = None) -> None:
    """Train this replica's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    mistakes.add_options(parser)
    options = parser.parse_args(arguments)
    mistakes.make(options, os.environ)
    if os.environ.get("PACELINE_ROLE") == "ps":
        servers.serve(os.environ)
    _train(options)


def _train(options: argparse.Namespace) -> None:
    from paceline.examples.clicks import generate
    from paceline.examples.clicks import train as clicks

    data = generate.load(options.data)
    first, *others = data.parameters.tables
    made = model(options.model, clicks.model((max(first, options.first_rows), *others)))
    try:
        training.run(
            mistakes.changed(made, options),
            train=training.Source((data.train_pattern,)),
            evaluation=training.Source((data.evaluation_file,)),
        )
    except training.TrainingError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
