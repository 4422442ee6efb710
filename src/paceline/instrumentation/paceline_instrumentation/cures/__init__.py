"""Changes to a script's use of TensorFlow that the job file's ``training:`` block asks for.

A cure has a name and a version. It changes the graph while the script builds it, and reports what it was
applied to. If it does not fit, it reports why, and TensorFlow's own code runs as if the cure did not exist.
``catalogue`` knows which settings ask for which cure.
"""

from __future__ import absolute_import
