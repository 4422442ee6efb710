"""The environment that make makes: pip's configuration reaches uv, and the locks agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import environment

ROOT = Path(__file__).parents[2]
LISTING = """\
:env:.default-timeout='180'
:env:.index-url='https://mirror.example.com/simple'
global.cert='/etc/certificates.crt'
global.find-links='\\n/opt/wheels\\n/opt/more'
global.index-url='https://other.example.com/simple'
global.extra-index-url='https://more.example.com/simple'
global.trusted-host='mirror.example.com'
freeze.timeout='10'
"""


def test_what_pip_is_configured_to_do_reaches_uv(tmp_path: Path) -> None:
    found = environment.settings({"HOME": str(tmp_path)}, environment.parsed(LISTING))
    assert found == {
        "UV_DEFAULT_INDEX": "https://mirror.example.com/simple",
        "UV_INDEX": "https://more.example.com/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/opt/wheels,/opt/more",
        "UV_INSECURE_HOST": "mirror.example.com",
        "SSL_CERT_FILE": "/etc/certificates.crt",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_what_uv_is_told_itself_counts_more(tmp_path: Path) -> None:
    pip = environment.parsed(LISTING)
    given = {"HOME": str(tmp_path), "UV_DEFAULT_INDEX": "https://mine.example.com"}
    assert "UV_DEFAULT_INDEX" not in environment.settings(given, pip)
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").touch()
    assert environment.settings(given, pip) == {}


def test_pip_says_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example.com/simple")
    assert environment.pip_configuration()["index-url"] == "https://mirror.example.com/simple"


def test_an_environment_is_used_again_when_its_python_fits(tmp_path: Path) -> None:
    assert environment.is_usable(Path(sys.executable))
    assert not environment.is_usable(tmp_path / "python")


def pins(name: str) -> dict[str, str]:
    """Return the packages of a lock file: each with its version, its condition and its hashes."""
    text = re.sub(r"^\s*#.*$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    entries = re.split(r"\n(?=[a-zA-Z0-9])", text)
    return {entry.split("==")[0]: " ".join(entry.split()) for entry in entries if "==" in entry}


def version(pin: str) -> str:
    return pin.split("==")[1].split(" ")[0]


def hashes(pin: str) -> set[str]:
    return set(re.findall(r"--hash=(\S+)", pin))


def test_the_demo_installs_a_part_of_what_the_tests_do() -> None:
    whole, part = pins("requirements.lock"), pins("requirements-demo.lock")
    assert part.keys() < whole.keys()
    for name, pin in part.items():
        assert version(pin) == version(whole[name]), f"{name}: make lock"
        assert hashes(pin) == hashes(whole[name]), f"{name}: make lock"


def test_the_demo_installs_all_that_it_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (demo,) = extras["demo"]
    named = re.fullmatch(r"paceline\[(.+)\]", demo)
    assert named is not None
    needed = [*project["dependencies"], *(each for extra in named[1].split(",") for each in extras[extra])]
    names = {re.split(r"[\[<>=~; ]", each)[0].lower() for each in needed}
    assert names <= {name.partition("[")[0].lower() for name in pins("requirements-demo.lock")}, "make lock"


def test_uv_is_pinned_by_hashes() -> None:
    (pin,) = pins("requirements-uv.lock").values()
    assert pin.startswith("uv==")
    assert hashes(pin)


def test_it_runs_without_anything_installed() -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "tools" / "environment.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "IndexError" in done.stderr, "it was loaded, and given no arguments"
