"""Taking a model of tf_keras apart; what it then computes is checked with `keras_models`."""

import numpy as np
import pytest

from paceline.training import errors

pytestmark = pytest.mark.slow


def of_site(*after, units=1, activation="sigmoid"):
    """An embedding of the sites, some layers, and a dense one."""
    import tf_keras as keras

    site = keras.Input((1,), name="site")
    hidden = keras.layers.Embedding(12, 4, name="vectors")(site)
    for layer in after:
        hidden = layer(hidden)
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    return keras.Model(site, keras.layers.Dense(units, activation=activation)(hidden))


def tied():
    import tensorflow as tf
    import tf_keras as keras

    class Tied(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = keras.layers.Embedding(12, 4, name="vectors")

        def call(self, asked):
            scores = tf.matmul(self.table(asked["site"]), self.table.embeddings, transpose_b=True)
            return tf.reduce_sum(scores, axis=1)

    model = Tied()
    model({"site": np.array([1, 2])})
    return model


def two_outputs():
    model = of_site()
    return type(model)(model.inputs, [model.outputs[0], model.outputs[0]])


def not_called():
    import tf_keras as keras

    return type("Mine", (keras.Model,), {})(name="mine")


def compiled():
    import tensorflow as tf
    import tf_keras as keras

    class Compiled(keras.layers.Dense):
        @tf.function
        def call(self, hidden):
            return super().call(hidden)

    return of_site(Compiled(4, name="compiled"))


def layer(kind, *arguments, **options):
    import tf_keras as keras

    return getattr(keras.layers, kind)(*arguments, **options)


REFUSED = {
    "dropout": (
        lambda: of_site(layer("Dropout", 0.5, name="drop")),
        r"layer 'drop' \(Dropout\) computes something else in training",
    ),
    "moving statistics": (
        lambda: of_site(layer("BatchNormalization", name="norm")),
        r"layer 'norm' \(BatchNormalization\) computes something else in training",
    ),
    "a tied table": (tied, r"layer 'vectors' \(Embedding\) is used otherwise than to look up ids \(ReadVar"),
    "a compiled layer": (compiled, r"the weight 'compiled/\w+:0' is used in .*PartitionedCall\), where no"),
    "softmax": (lambda: of_site(activation="softmax"), r"ends in 'model\w*/dense\w*/Softmax' \(Softmax\)"),
    "classes": (lambda: of_site(units=3), r"output of the model has the shape \(None, 3\)"),
    "two outputs": (two_outputs, "the model has 2 outputs"),
    "unknown inputs": (not_called, "the inputs of the model 'mine' are not known yet; call it once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_over_is_refused(name):
    from paceline.training.graph import keras_graphs

    make, message = REFUSED[name]
    with pytest.raises(errors.SettingsError, match=message):
        keras_graphs.record(make())
