"""Texts that some YAML reader takes for something other than text if they have no quotes.

PyYAML follows YAML 1.1 only in part. kubectl and Helm read YAML with ``go-yaml`` (``resolve.go``, versions 2
and 3), for which ``25921e05`` and ``0809`` are numbers and ``y`` is true. For a reader of YAML 1.2, ``0o17``
is a number.
"""

from __future__ import annotations

import re

#: Words with a special meaning in YAML 1.1 or 1.2, in upper or lower case.
_WORDS = frozenset(
    [
        *("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "="),
        *(sign + word for sign in ("", "+", "-") for word in (".inf", "inf", ".nan", "nan")),
    ]
)
#: Matches texts whose underscores are removed, because YAML 1.1 and go-yaml ignore them.
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-f]+|0b[01]+|0o?[0-7]+|\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:e[-+]?[0-9]+)?", re.IGNORECASE
)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
#: None of the words, numbers and dates above is longer, except for long runs of digits: their beginning is
#: enough.
_LONGEST = 400


def is_ambiguous(text: str) -> bool:
    """Return whether a text without quotes may be read as a number, a boolean, a date or null."""
    if text.lower() in _WORDS:
        return True
    if text[:1] not in "+-.0123456789" or (len(text) > _LONGEST and not text[:_LONGEST].isdigit()):
        return False
    shape = text[:_LONGEST].replace("_", "")
    return any(each.fullmatch(shape) for each in (_NUMBER, _SEXAGESIMAL, _DATE))
