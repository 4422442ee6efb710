"""What replicas inherit of the shell that a job was submitted from, and where another one is different.

A job that is resumed, or whose supervisor was lost, goes on with the environment of the shell that does that.
Values may be secrets, so only salted digests of them are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

#: What a terminal has for itself, and what Paceline sets.
_OWN = re.compile(
    r"_|SHLVL|(?:OLD)?PWD|COLUMNS|LINES|TERM|TERM_\w+|COLORTERM|DISPLAY|WINDOW(?:ID)?|STY|TTY|PS1"
    r"|(?:SSH|TMUX|XDG|VTE|DBUS|GPG|INVOCATION|JOURNAL|PYTEST|PACELINE)_\w+|TMUX"
)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
MOST_NAMES = 8


def note(path: Path, environment: Mapping[str, str]) -> list[str]:
    """Return in a sentence where an environment differs from the first one that a job had, if it does.

    Args:
        path: where the digests of that are; when it is not there, this is the first.
        environment: what replicas would begin with now.
    """
    inherited = {name: value for name, value in environment.items() if not _OWN.fullmatch(name)}
    try:
        known = json.loads(path.read_text())
        before, salt = dict(known["digests"]), bytes.fromhex(known["salt"])
    except (OSError, ValueError, KeyError, TypeError):  # The first time, or the disk was full then.
        salt = secrets.token_bytes(16)
        with contextlib.suppress(OSError):
            path.write_text(json.dumps({"salt": salt.hex(), "digests": _digests(inherited, salt)}))
        return []
    now = _digests(inherited, salt)
    changes = (
        ("changed", [name for name in before.keys() & now.keys() if before[name] != now[name]]),
        ("new", now.keys() - before.keys()),
        ("gone", before.keys() - now.keys()),
    )
    parts = [f"{what}: {_listed(names)}" for what, names in changes if names]
    if not parts:
        return []
    return [f"it goes on with the environment of another shell than its first ({'; '.join(parts)})"]


def _digests(environment: Mapping[str, str], salt: bytes) -> dict[str, str]:
    return {
        name: hashlib.blake2b(value.encode(errors="surrogateescape"), key=salt, digest_size=8).hexdigest()
        for name, value in environment.items()
    }


def _listed(names: Iterable[str]) -> str:
    """Return names of variables for people: some of them, and how many more there are."""
    known = sorted(names)
    shown = [name for name in known if _NAME.fullmatch(name)][:MOST_NAMES]
    left = len(known) - len(shown)
    return ", ".join([*shown, *([f"{left} more"] if left else [])])
