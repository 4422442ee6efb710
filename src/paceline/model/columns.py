"""Values as rows of a table: which columns they need."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping


@functools.cache
def fields(kind: type) -> Mapping[str, tuple[type, bool]]:
    """Return the type of each field's values and whether it may be None."""
    hints = {name: typing.get_args(hint) or (hint,) for name, hint in typing.get_type_hints(kind).items()}
    return {name: (options[0], types.NoneType in options) for name, options in hints.items()}
