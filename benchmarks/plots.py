"""The few kinds of plots that benchmarks draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "paceline"
from matplotlib import pyplot  # noqa: E402 - the backend has to be chosen first


def strips(
    path: Path,
    groups: Mapping[str, Sequence[float]],
    *,
    label: str,
    title: str,
    limits: Mapping[str, float] | None = None,
) -> None:
    """Draw every repeat of each group as a dot, its median as a bar, and its limit as a dashed line."""
    figure, axes = pyplot.subplots(figsize=(7.0, 0.7 * len(groups) + 1.6))
    for row, (name, values) in enumerate(groups.items()):
        axes.plot(values, [row] * len(values), "o", alpha=0.5, color="#0072B2")
        median = sorted(values)[len(values) // 2]
        axes.plot([median, median], [row - 0.25, row + 0.25], color="black", linewidth=2)
        if limits and name in limits:
            axes.plot([limits[name]] * 2, [row - 0.4, row + 0.4], "--", color="#D55E00")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=10)
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def matrix(
    path: Path, counts: Sequence[Sequence[int]], *, rows: Sequence[str], columns: Sequence[str], title: str
) -> None:
    """Draw counts as a grid: the darker the more, each count in its cell."""
    size = 0.27
    figure, axes = pyplot.subplots(figsize=(size * len(columns) + 3, size * len(rows) + 2.5))
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for y, row in enumerate(counts):
        for x, count in enumerate(row):
            if count:
                colour = "white" if shares[y][x] > 0.5 else "black"
                axes.text(x, y, str(count), ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(columns)), list(columns), rotation=90, fontsize=7)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=7)
    axes.set_title(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
