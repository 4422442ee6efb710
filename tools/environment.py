"""Makes the environment that `make` works in: a virtual environment with the packages of a lock file.

    python tools/environment.py .venv requirements.lock

It needs nothing but Python. uv installs; where there is none on PATH, a pinned one goes into `.venv-uv`.
uv does not read pip's configuration, so what that says about indexes, certificates and proxies is handed on,
unless uv has a configuration of its own.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The version of uv that is fetched where there is none, with its hashes.
UV_LOCK = ROOT / "requirements-uv.lock"
UV_HOME = ROOT / ".venv-uv"
#: What pip calls a setting, and the variable by which uv takes it.
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "HTTPS_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
#: Settings whose values pip separates by blanks and uv by commas.
LISTS = ("UV_FIND_LINKS",)


def main(arguments: list[str]) -> int:
    """Make the environment; return the exit code."""
    folder, lock = Path(arguments[0]), arguments[1]
    environment = {**os.environ, **settings(os.environ, pip_configuration()), "UV_PYTHON_DOWNLOADS": "never"}
    uv = shutil.which("uv") or fetched_uv()
    print(f"== making the environment in {folder} from {lock}, with {uv}", flush=True)
    python = folder / "bin" / "python"
    if not is_usable(python):
        _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], environment)
    install = [uv, "pip", "install", "--python", str(python)]
    _run([*install, "--require-hashes", "--requirement", lock], environment)
    _run([*install, "--quiet", "--no-deps", "--editable", str(ROOT)], environment)
    return 0


def is_usable(python: Path) -> bool:
    """Whether an environment is there, and has the Python that runs this."""
    command = [str(python), "-c", "import sys; print(sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return done.stdout.strip() == str(sys.version_info[:2])


def fetched_uv() -> str:
    """Return the path of uv in an environment of its own, made where it is missing."""
    uv = UV_HOME / "bin" / "uv"
    if not uv.exists():
        print(f"== there is no uv on PATH: pip puts one into {UV_HOME.name}", flush=True)
        _run([sys.executable, "-m", "venv", str(UV_HOME)])
        pip = [str(UV_HOME / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
        _run([*pip, "--require-hashes", "--requirement", str(UV_LOCK)])
    return str(uv)


def pip_configuration() -> dict[str, str]:
    """Return what pip is configured to do, by the names of its settings."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return parsed(done.stdout)
    # There is no pip to ask: its variables count all the same.
    variables = {name: os.environ.get(f"PIP_{name.upper().replace('-', '_')}") for name in SETTINGS}
    return {name: value for name, value in variables.items() if value}


def parsed(listing: str) -> dict[str, str]:
    """Return the settings that `pip config list` prints; those of the environment count most, as for pip."""
    found: dict[str, str] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        key, equals, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if equals and section in ("global", "install", ":env:"):
            found[name] = str(ast.literal_eval(value))
    return found


def settings(environment: Mapping[str, str], pip: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make uv do as pip is configured; none that are set already.

    Args:
        environment: the variables that are set.
        pip: pip's settings.
    """
    home = Path(environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "/"), ".config"))
    if any(file.exists() for file in (home / "uv" / "uv.toml", Path("/etc/uv/uv.toml"))):
        return {}
    found = {}
    for name, variable in SETTINGS.items():
        value = pip.get(name, "").split()
        if value and variable not in environment:
            found[variable] = ("," if variable in LISTS else " ").join(value)
    if "UV_INDEX" in found:
        # As pip does: all indexes count alike. What may come from them, hashes say.
        found.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return found


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command that shows what it does; end with its exit code when it fails."""
    code = subprocess.run(command, env=environment, check=False).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
