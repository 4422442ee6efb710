"""The columns of a table whose rows are values of a dataclass."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping


@functools.cache
def fields(kind: type) -> Mapping[str, tuple[type, bool]]:
    """Return for each field the type of its values, and whether it may be None."""
    hints = {name: typing.get_args(hint) or (hint,) for name, hint in typing.get_type_hints(kind).items()}
    return {name: (options[0], types.NoneType in options) for name, options in hints.items()}
