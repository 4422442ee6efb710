"""Which variable is meant by its server and its shape: a profile has these, but not the variable's name."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

from paceline.model.variables.variables import Variable, part_name
from paceline.tracing.shapes import Dimensions


class Placements:
    """The variables of a model by server; a part of a variable has the name `NAME/part_N`."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        self._rows: dict[tuple[str, Dimensions], list[str]] = collections.defaultdict(list)
        self._whole: dict[tuple[str, Dimensions], list[str]] = collections.defaultdict(list)
        self._known: dict[str, Variable] = {}
        for each in variables:
            for number, task in enumerate(each.devices):
                name = part_name(each.name, number, len(each.devices))
                self._known[name] = each
                if each.sparse:
                    self._rows[task, each.shape[1:]].append(name)
                elif len(each.devices) == 1:
                    self._whole[task, each.shape].append(name)

    def fits(self, name: str, dimensions: Dimensions) -> bool:
        """Return whether these are the dimensions of an array, or of some rows of a table."""
        known = self._known.get(name)
        if known is None:
            return False
        return dimensions[1:] == known.shape[1:] if known.sparse else dimensions == known.shape

    def rows(self, task: str, dimensions: Dimensions) -> str | None:
        """Return the table on a server whose rows have these dimensions, if there is only one."""
        return _only(self._rows[task, dimensions])

    def whole(self, task: str, dimensions: Sequence[Dimensions]) -> str | None:
        """Return the array on a server that has one of these dimensions, if there is only one."""
        return _only([name for each in set(dimensions) for name in self._whole[task, each]])


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None
