"""What the training script and its instrumentation report."""

import contextlib
import json
import math
import os
import re
import time
from typing import Any, Callable, Dict, List, Optional, Set

from .spools import SEEN_TYPES, Spool

REPORT_TYPES = ("step", "evaluation", "standing", *SEEN_TYPES)


REPORT_NUMBERS = {
    "step": (
        "step", "steps", "examples", "loss", "interval_seconds", "input_wait_seconds", "total_steps",
        "input_cpu_seconds", "all_reduce_seconds",
    ),
    "evaluation": ("step", "examples", "auc", "log_loss", "accuracy"),
}  # fmt: skip

QUALITIES = ("loss", "auc", "log_loss", "accuracy")  # may be negative
MOST_COUNT = 2**62  # of steps, bytes or seconds
MOST_QUALITY = 1e100  # so that no sum of losses is infinite
MOST_FAULTS = 20  # kinds of faulty reports that are reported
LONGEST_NUMBER = 40  # characters
DAY_SECONDS = 86400.0
REPORT_CHUNK_BYTES = 1 << 20


def parse_report(line: bytes) -> Optional[Dict[str, Any]]:
    """Parse a line from the training script; None if it is no report. NaN becomes null: JSON has no NaN."""
    try:
        report = json.loads(
            line.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite, parse_int=_whole
        )
        json.dumps(report, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("type") not in REPORT_TYPES:
        return None
    return report


def _finite(text: str) -> Any:
    """Return a float, or the text itself if the value is not finite."""
    value = float(text)
    return value if math.isfinite(value) else text


def _whole(text: str) -> Any:
    """Return an integer, or the text itself if it is longer than any sensible number."""
    return int(text) if len(text) <= LONGEST_NUMBER else text


def mend_report(report: Dict[str, Any], now: float) -> List[str]:
    """Remove invalid numbers from a report; return what was wrong, one sentence each.

    A number written as text is converted. A time that is missing, invalid or more than a day off becomes the
    time of arrival.
    """
    faults = []
    number_fields = REPORT_NUMBERS.get(report["type"], ())
    for name in number_fields:
        if report.get(name) is not None:
            value = report[name]
            number = _number(value)
            if number is None or not (name in QUALITIES or 0 <= number < MOST_COUNT):
                del report[name]
                faults.append("%s is no number that it can be: %s" % (name, _shown(value)))
            elif isinstance(value, str):
                report[name] = number
                faults.append("%s is a text, and read as a number: %s" % (name, _shown(value)))
    at = report.get("at")
    if at is not None and (_number(at) is None or isinstance(at, str) or abs(at - now) > DAY_SECONDS):
        faults.append("at is no time in Unix seconds: %s" % _shown(at))
        at = None
    report["at"] = now if at is None else at
    if number_fields and not any(name in report for name in number_fields):
        others = sorted(set(report) - {"type", "at", "source", "replica"})
        faults.append("%s: no field of it is known, only %s" % (report["type"], _shown(", ".join(others))))
    return faults


def _number(value: Any) -> Any:
    """Return a plausible number, also from text; None for anything else."""
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER:
            return None
        try:
            value = float(value) if re.search("[.eE]", value) else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value if abs(value) < MOST_QUALITY else None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "..."


class Reports:
    """Follows the training script's report file, from its end at the time the agent started.

    A script may itself report what the instrumentation also sees: then the script's own reports count.
    """

    def __init__(self, path: str, passed: Callable[[Dict[str, Any]], None]) -> None:
        self._path, self._offset, self._inode, self.rejected = path, 0, 0, 0
        self._passed = passed
        self._said: Set[str] = set()  # what the script reports by itself
        self._faults: Dict[str, int] = {}  # what was wrong with reports, and how often
        self.is_script_seen = False
        with contextlib.suppress(OSError):
            status = os.stat(path)
            self._offset, self._inode = status.st_size, status.st_ino

    def forward(self, spool: Spool, final: bool) -> None:
        """Forward new lines, at the end all of them. Lines that the spool cannot take are left for later."""
        before = None
        while before != self._offset:
            before = self._offset
            self._forward_some(spool, final)
            if not final:
                return

    def _forward_some(self, spool: Spool, final: bool) -> None:
        """Forward the new lines within a limit of bytes."""
        try:
            status = os.stat(self._path)
            if status.st_ino != self._inode or status.st_size < self._offset:
                self._offset, self._inode = 0, status.st_ino
            if status.st_size == self._offset:
                return
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read(REPORT_CHUNK_BYTES)
        except OSError:
            return
        for line in re.findall(rb"[^\n]*\n|[^\n]+", data):
            is_last = final and len(data) < REPORT_CHUNK_BYTES
            if not (line.endswith(b"\n") or is_last or len(line) == REPORT_CHUNK_BYTES):
                return
            now = time.time()
            report = parse_report(line)
            self.is_script_seen = self.is_script_seen or report is not None
            faults = [] if report is None else mend_report(report, now)
            if report is not None and not self._is_said(report):
                if not spool.append(report):
                    return
                self._passed(report)
            self._offset += len(line)
            if report is None and line.strip():
                self.rejected += 1
                faults.append(
                    "a line is no report: %s" % _shown(line[:200].decode("utf-8", "replace").strip())
                )
            self._tell(spool, faults, now)

    def _tell(self, spool: Spool, faults: List[str], now: float) -> None:
        """Report what is wrong with reports: the first, tenth, hundredth ... fault of each kind."""
        for fault in faults:
            kind = fault.partition(": ")[0]
            if kind in self._faults or len(self._faults) < MOST_FAULTS:
                count = self._faults[kind] = self._faults.get(kind, 0) + 1
                if re.match("10*$", str(count)):
                    often = "" if count == 1 else " (%d times so far)" % count
                    spool.append({"type": "misread", "at": now, "message": fault + often})

    def _is_said(self, report: Dict[str, Any]) -> bool:
        """Return whether the script itself reports what the instrumentation has seen."""
        if report.get("source") != "instrumentation":
            self._said.add(report["type"])
            return False
        return report["type"] in self._said
