"""A training script around a model of tf_keras, run by the tests as the command of a job.

The chief then gives the model its trained values and logs the AUC that the model by itself has.
"""

import logging
import os
import sys

import tf_keras as keras

from paceline import training
from paceline.training import evaluations, features
from paceline.training.input import inputs

FEATURES = features.FeatureSet(
    numeric=(features.Numeric("x"),),
    categorical=(
        features.Identity("id", 50),
        features.Several(features.Identity("tags", 30), 3, combiner=None),
    ),
    label=features.Label("label"),
)


def model():
    asked = [keras.Input((1,), name="x"), keras.Input((1,), name="id"), keras.Input((3,), name="tags")]
    vectors = keras.layers.Flatten()(keras.layers.Embedding(50, 4)(asked[1]))
    pooled = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(30, 4)(asked[2]))
    hidden = keras.layers.Concatenate()([asked[0], vectors, pooled])
    hidden = keras.layers.Dense(8, activation="swish")(hidden)
    return keras.Model(asked, keras.layers.Dense(1, activation="sigmoid")(hidden))


def main(train, evaluation):
    adapted = training.KerasModel(model(), FEATURES)
    result = training.run(adapted, train=training.Source((train,)), evaluation=training.Source((evaluation,)))
    if result is not None:
        trained = adapted.restore(os.environ["PACELINE_CHECKPOINT_DIR"])
        (examples,) = inputs.once(training.Source((evaluation,)), FEATURES)
        scores = trained([examples.numeric, examples.ids[:, :1], examples.ids[:, 1:]])
        logging.info("the model's own AUC: %r", evaluations.auc(examples.labels, scores.numpy().ravel()))


if __name__ == "__main__":
    main(*sys.argv[1:])
