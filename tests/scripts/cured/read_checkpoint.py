"""Reads variables of a checkpoint by their names: the path, the names."""
import json
import sys

import tensorflow as tf

reader = tf.train.load_checkpoint(sys.argv[1])
print("result %s" % json.dumps([reader.get_tensor(name).tolist() for name in sys.argv[2:]]))
