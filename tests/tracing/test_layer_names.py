"""Variables by the names of the layers that read them."""

import pytest

from paceline.model.variables.variables import Variable
from paceline.tracing import layer_names


def variable(name, shape, *, sparse=False):
    return Variable(name=name, shape=shape, sparse=sparse)


KNOWN = (
    variable("site/embeddings", (20_000, 16), sparse=True),
    variable("hidden/kernel", (36, 64)),
    variable("hidden/bias", (64,)),
    variable("deep/out/kernel", (64, 1)),
    variable("a/twin/kernel", (2, 2)),
    variable("b/twin/kernel", (2, 2)),
    variable("table", (500, 8), sparse=True),
)


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        ("model/site", ("site/embeddings", None)),
        ("model/site/part_1", ("site/embeddings", 1)),
        ("model/hidden/MatMul", ("hidden/kernel", None)),
        ("model/hidden/BiasAdd", ("hidden/bias", None)),
        ("model/deep/out/MatMul", ("deep/out/kernel", None)),
        ("model/a/twin/MatMul", ("a/twin/kernel", None)),
        ("model/twin/MatMul", None),
        ("model/hidden", None),
        ("model/offsite", None),
        ("model/other/MatMul", None),
        ("", None),
        ("MatMul", None),
    ],
)
def test_the_variable_of_a_layer(layer, found):
    assert layer_names.variables([layer], KNOWN) == ({} if found is None else {layer: found})
