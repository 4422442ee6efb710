"""The environment that replicas inherit from the shell, and how it differs from the job's first one.

A job that is resumed, or whose lost supervisor is replaced, continues with the environment of the shell in
which this happens. Values may be secrets, so only salted digests of them are stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Variables that belong to the terminal session, and those that Paceline sets.
_OWN = re.compile(
    r"_|SHLVL|(?:OLD)?PWD|COLUMNS|LINES|TERM|TERM_\w+|COLORTERM|DISPLAY|WINDOW(?:ID)?|STY|TTY|PS1"
    r"|(?:SSH|TMUX|XDG|VTE|DBUS|GPG|INVOCATION|JOURNAL|PYTEST|PACELINE)_\w+|TMUX"
)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
MOST_NAMES = 8


def note(path: Path, environment: Mapping[str, str]) -> list[str]:
    """Return a sentence that says how the environment differs from the job's first one; none if it does not.

    Args:
        path: the file with the digests of the first environment. If it is missing or unreadable, the current
            environment counts as the first and the file is written.
        environment: the variables that replicas would inherit now.
    """
    inherited = {name: value for name, value in environment.items() if not _OWN.fullmatch(name)}
    try:
        known = json.loads(path.read_text())
        before, salt = dict(known["digests"]), bytes.fromhex(known["salt"])
    except (OSError, ValueError, KeyError, TypeError):  # The first start, or the disk was full at that time.
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
    """Return the first few names of variables as text, and how many more there are."""
    known = sorted(names)
    shown = [name for name in known if _NAME.fullmatch(name)][:MOST_NAMES]
    left = len(known) - len(shown)
    return ", ".join([*shown, *([f"{left} more"] if left else [])])
