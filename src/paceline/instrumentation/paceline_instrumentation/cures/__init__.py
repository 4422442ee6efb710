"""Changes of what a script asks of TensorFlow, made because the job file's ``training:`` block asks for them.

A cure has a name and a version. It changes the graph while the script builds it, says what it was applied to,
and says why not where it does not fit; then TensorFlow's own code runs as if the cure were not there.
``catalogue`` knows which settings ask for which cure.
"""

from __future__ import absolute_import
