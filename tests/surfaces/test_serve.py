"""``paceline serve``: what it refuses to begin with, before a client could reach it."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from paceline.services.local import state_dirs
from paceline.surfaces.web import gates, servers

Paceline = Callable[..., Result]
CLUSTER = ("--engine", "kubernetes")
HOST = ("--host", "paceline.example.com")


@pytest.mark.parametrize(
    ("options", "says", "next_"),
    [
        (("--address", "0.0.0.0"), "others could reach 0.0.0.0", "--gate kubernetes"),
        ((*CLUSTER, "--address", "10.0.0.1"), "others could reach 10.0.0.1", "--gate kubernetes"),
        (("--gate", "kubernetes"), "needs a cluster, which decides", "add --engine kubernetes"),
        (("--gate", "proxy", *HOST), "needs a cluster, which decides", "add --engine kubernetes"),
        ((*CLUSTER, "--gate", "kubernetes"), "needs the host name", "--host paceline.example.com"),
        ((*CLUSTER, "--gate", "proxy", *HOST), "needs the network of the proxy", "--proxy 10.0.0.0/8"),
        (
            (*CLUSTER, "--gate", "proxy", *HOST, "--proxy", "10.0.0.0/8"),
            "needs a secret by which the server recognizes the proxy",
            "x-paceline-proxy-secret",
        ),
        (("--address", "here"), "'here' is no address", "127.0.0.1"),
    ],
)
def test_what_does_not_go_together_is_refused(
    paceline: Paceline, options: tuple[str, ...], says: str, next_: str
) -> None:
    refused = paceline("serve", "--port", "0", *options)
    said = " ".join(refused.stderr.split())
    assert refused.exit_code != 0
    assert says in said
    assert next_ in said


def test_without_a_cluster_it_says_so(
    paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    nowhere = str(tmp_path / "none")
    refused = paceline("serve", "--port", "0", *CLUSTER, "--gate", "kubernetes", *HOST, KUBECONFIG=nowhere)
    assert refused.exit_code != 0
    assert "no Kubernetes cluster can be found" in " ".join(refused.stderr.split())


def test_the_names_of_a_server() -> None:
    with servers.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        names = servers.hosts(listener, ["Paceline.example.com", "other:8443"])
    assert names == {
        f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}",
        "paceline.example.com", f"paceline.example.com:{port}", "other:8443",
    }  # fmt: skip


def test_beyond_this_machine_only_with_a_gate_that_knows_people() -> None:
    with servers.listening("0.0.0.0", 0, beyond=True) as listener:
        assert servers.url(listener).startswith("http://0.0.0.0:")


@pytest.mark.parametrize("secret", ["", "short", "x" * 23, "\u00fc" * 30])
def test_a_secret_that_could_be_guessed_is_none(paceline: Paceline, secret: str) -> None:
    options = (*CLUSTER, "--gate", "proxy", *HOST, "--proxy", "10.0.0.0/8")
    refused = paceline("serve", "--port", "0", *options, PACELINE_PROXY_SECRET=secret)
    assert refused.exit_code != 0
    assert "at least 24 printable ASCII characters" in " ".join(refused.stderr.split())


def test_with_a_secret_networks_are_looked_at(paceline: Paceline) -> None:
    options = (*CLUSTER, "--gate", "proxy", *HOST, "--proxy", "web")
    refused = paceline("serve", "--port", "0", *options, PACELINE_PROXY_SECRET="x" * 24)
    assert "'web' is no network" in " ".join(refused.stderr.split())


def test_a_browser_is_opened_without_the_token_on_its_command_line(
    paceline: Paceline, home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All users of a machine see the command lines of its programs."""
    launched: list[str] = []
    seen: list[str] = []

    def launch(url: str) -> int:
        launched.append(url)
        file = Path(url.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        seen.append(file.read_text())
        return 0

    def run(*_: object, ready: Callable[[], None], **__: object) -> None:
        ready()

    monkeypatch.setattr(click, "launch", launch)
    monkeypatch.setattr(servers, "run", run)
    said = paceline("serve", "--port", "0", "--open")
    token = gates.token_file(home.path).read_text()
    (url,), (text,) = launched, seen
    assert token not in url
    link = next(line for line in said.stdout.splitlines() if "/enter?token=" in line)
    assert f'content="0; url={link}"' in text
    assert not Path(url.removeprefix("file://")).exists(), "it goes with the server"
