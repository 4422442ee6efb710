"""A whole training script of a few lines, run by the tests as the command of a job."""

import sys

from paceline import training
from paceline.training import features

ID = features.Identity("id", 50)
MODEL = training.WideAndDeep(
    features.FeatureSet(
        numeric=(features.Numeric("x"),),
        categorical=(ID, features.Identity("other", 20)),
        label=features.Label("label"),
    ),
    wide=(ID,),
)

if __name__ == "__main__":
    training.run(MODEL, train=training.Source((sys.argv[1],)), evaluation=training.Source((sys.argv[2],)))
