"""Texts that some reader of YAML takes for something else when they stand without quotes.

PyYAML's own rules are those of YAML 1.1 in part. kubectl and Helm read YAML by ``go-yaml`` (``resolve.go``,
versions 2 and 3), to which ``25921e05`` is a number, ``0809`` too, and ``y`` is true; a reader of YAML 1.2
takes ``0o17`` for one.
"""

from __future__ import annotations

import re

#: Of YAML 1.1 and 1.2, in any case.
_WORDS = frozenset(
    [
        *("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "="),
        *(sign + word for sign in ("", "+", "-") for word in (".inf", "inf", ".nan", "nan")),
    ]
)
#: After underscores are left out, as YAML 1.1 and go-yaml do.
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-f]+|0b[01]+|0o?[0-7]+|\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:e[-+]?[0-9]+)?", re.IGNORECASE
)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
#: No number, word or date of those above is longer, but for digits without end, whose first ones say so.
_LONGEST = 400


def is_ambiguous(text: str) -> bool:
    """Whether a text without quotes may be read as a number, a truth value, a date or nothing."""
    if text.lower() in _WORDS:
        return True
    if text[:1] not in "+-.0123456789" or (len(text) > _LONGEST and not text[:_LONGEST].isdigit()):
        return False
    shape = text[:_LONGEST].replace("_", "")
    return any(each.fullmatch(shape) for each in (_NUMBER, _SEXAGESIMAL, _DATE))
