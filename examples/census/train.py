"""Predicts who earns more than 50 000 a year, over parameter servers.

Run it from the job file beside it, or alone:

    TF_CONFIG='{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}' \
        python -m examples.census.train --data census-data
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from examples.census import data
from paceline import training
from paceline.training import features

AGE = features.Bucketised("age", (18, 21, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70))
HOURS = features.Bucketised("hours_per_week", (15, 25, 35, 40, 41, 46, 50, 51, 60))
SCHOOLING = features.Bucketised("education_num", tuple(range(2, 17)))
# Gains and losses are 0 for most people; who has one, how much matters stepwise (tax brackets).
GAIN = features.Bucketised(
    "capital_gain", (1, 3000, 4000, 4700, 5100, 5500, 6500, 7200, 7600, 10000, 14000, 20000)
)
LOSS = features.Bucketised(
    "capital_loss", (1, 1500, 1800, 1850, 1900, 1970, 1980, 2100, 2200, 2300, 2400, 2600)
)

WORKCLASS = features.Vocabulary(
    "workclass",
    (
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
        "Never-worked",
        "?",
    ),
)
MARITAL = features.Vocabulary(
    "marital_status",
    (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ),
)
RELATIONSHIP = features.Vocabulary(
    "relationship", ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")
)
RACE = features.Vocabulary("race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"))
SEX = features.Vocabulary("sex", ("Female", "Male"))
OCCUPATION = features.Vocabulary(
    "occupation",
    (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
        "?",
    ),
)
COUNTRY = features.Hashed("native_country", 200)

SINGLE = (AGE, HOURS, SCHOOLING, GAIN, LOSS, WORKCLASS, MARITAL, RELATIONSHIP, RACE, SEX, OCCUPATION, COUNTRY)
CROSSES = (
    features.Cross((SCHOOLING, OCCUPATION)),
    features.Cross((AGE, SCHOOLING)),
    features.Cross((AGE, OCCUPATION)),
    features.Cross((MARITAL, SCHOOLING)),
    features.Cross((RELATIONSHIP, HOURS)),
    features.Cross((WORKCLASS, OCCUPATION)),
    features.Cross((GAIN, MARITAL)),
    features.Cross((LOSS, MARITAL)),
)

# fnlwgt is a sampling weight of the survey, not something known of a person: neither feature nor weight.
# The labels of adult.test end in a dot.
MODEL = training.WideAndDeep(
    features.FeatureSet(
        numeric=(
            features.Numeric("age", mean=38.6, deviation=13.6),
            features.Numeric("education_num", mean=10.1, deviation=2.6),
            features.Numeric("hours_per_week", mean=40.4, deviation=12.3),
            features.Numeric("capital_gain", mean=0.7, deviation=2.5, log=True),
            features.Numeric("capital_loss", mean=0.35, deviation=1.6, log=True),
        ),
        categorical=SINGLE + CROSSES,
        label=features.Label("income", positive=(">50K", ">50K.")),
    ),
    deep=SINGLE,
)


def main(arguments: list[str] | None = None) -> None:
    """Trains this replica's part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path("census-data"), help="folder of adult.data and adult.test"
    )
    options = parser.parse_args(arguments)
    try:
        train, test = data.sources(options.data)
        training.run(MODEL, train=train, evaluation=test)
    except training.TrainingError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
