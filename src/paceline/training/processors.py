"""What the CPU can do."""

from __future__ import annotations

from pathlib import Path

_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last is Arm's


def has_bfloat16(description: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Return whether the CPU has bfloat16 instructions; None where the system does not say (proc(5))."""
    try:
        lines = description.read_text().splitlines()
    except OSError:
        return None
    flags = [
        line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features"))
    ]
    return any(_FLAGS & set(each) for each in flags) if flags else None
