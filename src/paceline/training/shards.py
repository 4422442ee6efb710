"""Which examples each trainer reads: shards that are distinct and together complete.

With at least as many files as trainers a shard is a set of whole files, so nobody decodes what another reads;
with fewer files every trainer reads all of them and keeps each n-th row. Both depend only on the
sorted list of files and the numbers of trainers, so a restarted trainer finds its own shard again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Shard:
    """Trainer `index` of `count`."""

    index: int = 0
    count: int = 1

    def by_file(self, files: Sequence[str]) -> bool:
        """True when there are enough files to give every trainer whole ones."""
        return len(files) >= self.count

    def files(self, files: Sequence[str]) -> tuple[str, ...]:
        """The files that this trainer reads."""
        return tuple(files[self.index :: self.count]) if self.by_file(files) else tuple(files)

    def rows(self, files: Sequence[str], first: int, rows: int) -> npt.NDArray[np.int64] | None:
        """Which of `rows` rows belong to this shard, the first being row `first` of its file; None for
        all.
        """
        if self.by_file(files):
            return None
        return np.arange((self.index - first) % self.count, rows, self.count, dtype=np.int64)


WHOLE = Shard()
"""Everything, for one reader."""
