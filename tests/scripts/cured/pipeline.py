"""A ``tf.data`` pipeline, read to its end; prints its elements and of what it was made.

``--iterator`` says how it is read: ``eager``, or in a session. TensorFlow 1.4 and later.
"""
import argparse
import json
import time

import numpy as np
import tensorflow

parser = argparse.ArgumentParser()
parser.add_argument("--iterator", default="eager")
parser.add_argument("--random", action="store_true", help="the function draws random numbers")
parser.add_argument("--own", action="store_true", help="the script has chosen by itself")
parser.add_argument("--ahead", type=int, default=0, help="wait until so many numbers were drawn for one batch")
options = parser.parse_args()
if options.iterator == "eager":
    tf = tensorflow
else:
    tf = tensorflow.compat.v1 if hasattr(tensorflow, "compat") and hasattr(tensorflow.compat, "v1") else tensorflow
    if hasattr(tf, "disable_v2_behavior"):
        tf.disable_v2_behavior()
BATCH, NUMBERS = 2, 40
SECONDS = 120
drawn = []


def numbers():
    for each in range(NUMBERS):
        drawn.append(each)
        yield each


def squared(number):
    extra = tf.cast(tf.equal(tf.random.uniform([]), 2.0), tf.int64) if options.random else 0
    return number * number + extra


def pipeline():
    made = tf.data.Dataset.from_generator(numbers, tf.int64, tf.TensorShape([]))
    made = made.map(squared, num_parallel_calls=2) if options.own else made.map(squared)
    made = made.batch(BATCH)
    return made.prefetch(1).repeat(1) if options.own else made


def wait():
    deadline = time.time() + SECONDS
    while len(drawn) < options.ahead and time.time() < deadline:
        time.sleep(0.01)
    return len(drawn)


def eagerly(data):
    iterator, elements = iter(data), []
    elements.append(next(iterator).numpy().tolist())
    count = wait()
    for each in iterator:
        elements.append(each.numpy().tolist())
    kinds, part = [], iterator._dataset
    while part is not None:
        kinds.append(type(part).__name__.lstrip("_"))
        part = getattr(part, "_input_dataset", None)
    return elements, count, kinds


def in_session(data):
    make = "make_%s_iterator" % options.iterator
    iterator = getattr(data, make)() if hasattr(data, make) else getattr(tf.data, make)(data)
    following, elements = iterator.get_next(), []
    with tf.Session() as session:
        if options.iterator == "initializable":
            session.run(iterator.initializer)
        elements.append(session.run(following).tolist())
        count = wait()
        try:
            while True:
                elements.append(session.run(following).tolist())
        except tf.errors.OutOfRangeError:
            pass
    graph = tf.get_default_graph().as_graph_def()
    nodes = list(graph.node) + [node for function in graph.library.function for node in function.node_def]
    return elements, count, [node.op for node in nodes if "Dataset" in node.op]


found = (eagerly if options.iterator == "eager" else in_session)(pipeline())
print("result %s" % json.dumps(dict(zip(("elements", "drawn", "kinds"), found))), flush=True)
