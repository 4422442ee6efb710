"""Some steps of Adam in Keras on a table and a dense layer, and what each has left: printed, and saved.

Keras of every generation: ``--keras`` names where it lies, ``--adam`` which of its optimizers is meant,
or that of a module.
"""
import argparse
import importlib
import json

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--keras", default="tensorflow.keras")
parser.add_argument("--adam", default="Adam")
parser.add_argument("--amsgrad", action="store_true")
parser.add_argument("--save")
parser.add_argument("--restore")
options = parser.parse_args()
keras = importlib.import_module(options.keras)
ROWS, WIDTH, FIELDS, BATCH, STEPS = 40, 3, 2, 8, 6


def plain(variables):
    return {each.path if options.keras == "keras" else each.name: each.numpy().tolist() for each in variables}


def main():
    random = np.random.RandomState(5)
    table = random.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
    kernel = random.uniform(-1, 1, (WIDTH * FIELDS, 1)).astype(np.float32)
    model = keras.Sequential(
        [
            keras.layers.InputLayer((FIELDS,)),
            keras.layers.Embedding(ROWS, WIDTH, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, use_bias=False, name="dense"),
        ]
    )
    model.set_weights([table, kernel])
    module, _, name = options.adam.rpartition(".")
    if ".adam." in options.adam:
        adam = importlib.import_module(module)
    else:
        adam = getattr(keras.optimizers, module) if module else keras.optimizers
    optimizer = getattr(adam, name)(learning_rate=0.05, amsgrad=options.amsgrad)
    model.compile(optimizer, "mse")
    # Ids repeat within a batch, and rows from 30 on are never used.
    batches = [
        (random.randint(0, 30, (BATCH, FIELDS)) // (1 + step % 2 * 4), random.uniform(-1, 1, (BATCH, 1)))
        for step in range(STEPS)
    ]
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    if options.restore:
        status = checkpoint.restore(options.restore)
    weights = []
    for ids, labels in batches if not options.restore else batches[:1]:
        model.train_on_batch(ids, labels.astype(np.float32))
        weights.append([each.tolist() for each in model.get_weights()])
    if options.restore:  # The slots are there now.
        status.assert_existing_objects_matched()
    variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    result = {
        "batches": [[ids.tolist(), labels.tolist()] for ids, labels in batches],
        "weights": [[table.tolist(), kernel.tolist()]] + weights,
        "slots": plain(variables),
        "saved": checkpoint.save(options.save) if options.save else None,
    }
    print("result %s" % json.dumps(result), flush=True)


main()
