"""Code fetched from real repositories, servers and stores on this machine."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.s3_stores import s3_store

from paceline.agent import fetch


def git(folder: Path, *arguments: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e"}
    committer = {"GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={**os.environ, **own, **committer}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits; the tag v1 is the first, the branch main the second."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for version in ("one", "two"):
        (folder / "train.py").write_text(version)
        (folder / "pkg").mkdir(exist_ok=True)
        (folder / "pkg" / "run.sh").write_text("#!")
        (folder / "pkg" / "run.sh").chmod(0o755)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", version)
        if version == "one":
            git(folder, "tag", "--annotate", "--message", "first", "v1")
    return folder


def archive(**files: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(made.getvalue(), mtime=0)


CODE = archive(**{"train.py": "print()", "pkg__x": "y"})
SUM = hashlib.sha256(CODE).hexdigest()


def fetched(tmp_path: Path, start: str = ".", **source: Any) -> Path:
    fetch.fetch({**source, "start": start}, tmp_path / "code")
    return tmp_path / "code"


def from_archive(url: str, sha256: str = SUM) -> dict[str, Any]:
    return {"archive": {"url": url, "sha256": sha256}}


# --- git ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("revision", "text"), [("main", "two"), ("v1", "one"), ("refs/heads/main", "two")])
def test_a_branch_or_a_tag(repository: Path, tmp_path: Path, revision: str, text: str) -> None:
    source = {"git": {"url": f"file://{repository}", "revision": revision}, "start": "pkg"}
    notes = fetch.fetch(source, tmp_path / "code")
    assert (tmp_path / "code" / "train.py").read_text() == text
    assert os.access(tmp_path / "code" / "pkg" / "run.sh", os.X_OK)
    assert notes == [f"code: commit {git(repository, 'rev-parse', f'{revision}^0')} of file://{repository}"]
    assert sorted(os.listdir(tmp_path / "code")) == ["pkg", "train.py"], "nothing of git itself"
    assert sorted(os.listdir(tmp_path)) == ["code", "repository"]


@pytest.mark.parametrize("length", [40, 10])
def test_a_commit_that_no_branch_ends_at(repository: Path, tmp_path: Path, length: int) -> None:
    commit = git(repository, "rev-parse", "main~1")
    git(repository, "tag", "--delete", "v1")
    code = fetched(tmp_path, git={"url": f"file://{repository}", "revision": commit[:length]})
    assert (code / "train.py").read_text() == "one"


def test_what_was_fetched_before_is_replaced_whole(repository: Path, tmp_path: Path) -> None:
    url = f"file://{repository}"
    (fetched(tmp_path, git={"url": url, "revision": "main"}) / "left over").touch()
    code = fetched(tmp_path, git={"url": url, "revision": "v1"})
    assert (code / "train.py").read_text() == "one"
    assert not (code / "left over").exists()


@pytest.mark.parametrize(
    ("url", "revision", "says"),
    [
        ("file://{}", "no-such", "at no-such: fatal: couldn't find remote ref no-such"),
        ("file://{}", "0123456789abcdef0123456789abcdef01234567", "at 0123456789abcdef"),
        ("file://{}/none", "main", "does not appear to be a git repository|does not exist"),
        ("--upload-pack=touch {}/owned", "main", "an option of git"),
        ("file://{}", "--upload-pack=touch {}/owned", "an option of git"),
        ("file://{}", "main:refs/heads/x", "an option of git"),
        ("ext::touch {}/owned", "main", "transport 'ext' not allowed"),
        ("ssh://-oProxyCommand=touch {}/owned/x", "main", "strange hostname|blocked"),
        ("http://127.0.0.1:9/x.git", "main", "http://127.0.0.1:9/x.git at main: fatal: unable to access"),
    ],
)
def test_what_git_refuses_or_must_not_be_told(
    repository: Path, tmp_path: Path, url: str, revision: str, says: str
) -> None:
    source = {"url": url.format(repository), "revision": revision.format(repository)}
    with pytest.raises(fetch.FetchError, match=says):
        fetched(tmp_path, git=source)
    assert not (repository / "owned").exists()
    assert os.listdir(tmp_path) == ["repository"], "no half of it is left"


def test_a_hook_or_filter_of_a_repository_does_not_run(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("* filter=evil\n")
    (repository / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ext::touch owned\n')
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "three")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/owned\n")
    hook.chmod(0o755)
    source = {"git": {"url": f"file://{repository}", "revision": "main"}, "start": "."}
    notes = fetch.fetch(source, tmp_path / "code")
    assert "submodules" in notes[1]
    assert sorted(os.listdir(tmp_path)) == ["code", "repository"]


def test_pointers_of_git_lfs_are_told(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "three")
    monkeypatch.setattr("shutil.which", lambda name: None)
    source = {"git": {"url": f"file://{repository}", "revision": "main"}, "start": "."}
    assert "git-lfs is not installed" in fetch.fetch(source, tmp_path / "code")[1]


def test_the_environment_of_another_repository_does_not_matter(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook, where git has set these."""
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    code = fetched(tmp_path, git={"url": f"file://{repository}", "revision": "v1"})
    assert (code / "train.py").read_text() == "one"
    monkeypatch.undo()
    assert git(repository, "status", "--porcelain") == ""


# --- HTTP ---------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the files of ``server.files``; what starts with a number is answered with that status."""

    def do_GET(self) -> None:
        server: Any = self.server
        path = urllib.parse.urlsplit(self.path).path
        server.seen.append((path, self.headers.get("Authorization")))
        answer = server.files.get(path, 404)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, str):
            self.send_response(302)
            self.send_header("Location", answer)
            self.end_headers()
        elif isinstance(answer, int):
            self.send_error(answer)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CODE)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], **fields: Any) -> Iterator[Any]:
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.seen, server.files, server.url = [], {}, f"http://127.0.0.1:{server.server_port}"
    vars(server).update(fields)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(fetch, "_DELAYS_SECONDS", (0.01, 0.01))
    with serving(Handler, files={"/code.tgz": CODE}) as made:
        yield made


def test_an_archive_over_http(server: Any, tmp_path: Path) -> None:
    code = fetched(tmp_path, "pkg", **from_archive(f"{server.url}/code.tgz?signature=s3cret"))
    assert (code / "train.py").read_text() == "print()"
    assert (code / "pkg" / "x").read_text() == "y"
    assert os.listdir(tmp_path) == ["code"]


def test_nothing_is_unpacked_with_a_wrong_checksum(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = "0" * 64
    monkeypatch.setattr(fetch.unpacking, "unpack", lambda *arguments: pytest.fail("it was unpacked"))
    with pytest.raises(fetch.FetchError, match=f"SHA-256 is {SUM}, not {sha256}") as refused:
        fetched(tmp_path, **from_archive(f"{server.url}/code.tgz?signature=s3cret", sha256))
    assert "s3cret" not in str(refused.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("trouble", [503, 429, CODE[:50]])
def test_lost_and_busy_servers_are_asked_again(server: Any, tmp_path: Path, trouble: Any) -> None:
    server.files["/code.tgz"] = [trouble, trouble, CODE]
    assert (fetched(tmp_path, **from_archive(f"{server.url}/code.tgz")) / "train.py").exists()


@pytest.mark.parametrize(
    ("answer", "says", "tries"),
    [
        (404, "the server says 404", 1),
        (403, "says 403", 1),
        (500, "says 500", 3),
        (CODE[:9], "after 9 of", 3),
    ],
)
def test_what_a_server_does_not_give(server: Any, tmp_path: Path, answer: Any, says: str, tries: int) -> None:
    server.files["/code.tgz"] = answer
    with pytest.raises(fetch.FetchError, match=says) as refused:
        fetched(tmp_path, **from_archive(f"{server.url}/code.tgz"))
    assert str(refused.value).startswith(f"{server.url}/code.tgz: ")
    assert len(server.seen) == tries


def test_a_server_that_is_not_there(server: Any, tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError, match=r"http://127\.0\.0\.1:9/x: it cannot be reached: .*refused"):
        fetched(tmp_path, **from_archive("http://127.0.0.1:9/x"))


def test_a_redirection_leads_to_no_file_of_this_machine(server: Any, tmp_path: Path) -> None:
    (tmp_path / "code.tgz").write_bytes(CODE)
    server.files["/code.tgz"] = f"file://{tmp_path}/code.tgz"
    with pytest.raises(fetch.FetchError, match=r"302|not allowed"):
        fetched(tmp_path, **from_archive(f"{server.url}/code.tgz"))


def test_a_password_goes_to_its_server_alone(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fetch.PASSWORD, "t0ken")
    monkeypatch.setenv(fetch.USER, "ada")
    with serving(Handler, files={"/other.tgz": CODE}) as other:
        server.files["/code.tgz"] = f"{other.url}/other.tgz"
        fetched(tmp_path, **from_archive(f"{server.url}/code.tgz"))
        assert other.seen == [("/other.tgz", None)]
    basic = "Basic " + base64.b64encode(b"ada:t0ken").decode()
    assert server.seen == [("/code.tgz", basic)]


def test_git_sends_the_password_without_its_command_line(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fetch.PASSWORD, "t0ken")
    commands: list[list[str]] = []
    run = subprocess.run

    def noted(command: list[str], **more: Any) -> Any:
        commands.append(command)
        return run(command, **more)

    monkeypatch.setattr(subprocess, "run", noted)
    with pytest.raises(fetch.FetchError) as refused:
        fetched(tmp_path, git={"url": f"{server.url}/x.git", "revision": "main"})
    basic = "Basic " + base64.b64encode(b"git:t0ken").decode()
    assert server.seen[0] == ("/x.git/info/refs", basic)
    assert not [word for command in commands for word in command if "t0ken" in word or basic in word]
    assert "t0ken" not in str(refused.value)


class GitHttp(http.server.BaseHTTPRequestHandler):
    """A git server by git's own ``http-backend`` (CGI), for those who know the password."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.seen.append((self.path, self.headers.get("Authorization")))
        if self.headers.get("Authorization") != server.basic:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="code"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        asked = {
            "GIT_PROJECT_ROOT": str(server.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(
            ["git", "http-backend"], input=body, env={**os.environ, **asked}, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *arguments: Any) -> None:
        pass


def test_a_private_repository_over_http(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    basic = "Basic " + base64.b64encode(b"ada:t0ken").decode()
    with serving(GitHttp, root=repository.parent, basic=basic) as server:
        source = {"url": f"{server.url}/repository/.git", "revision": "v1"}
        with pytest.raises(fetch.FetchError, match=r"could not read Username|Authentication failed"):
            fetched(tmp_path, git=source)
        monkeypatch.setenv(fetch.PASSWORD, "t0ken")
        monkeypatch.setenv(fetch.USER, "ada")
        code = fetched(tmp_path, git=source)
        assert (code / "train.py").read_text() == "one"
        monkeypatch.setenv(fetch.PASSWORD, "wrong")
        with pytest.raises(fetch.FetchError) as refused:
            fetched(tmp_path, git=source)
        assert "wrong" not in str(refused.value)


# --- Other places -------------------------------------------------------------------------------------


def test_files_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a b.tgz").write_bytes(CODE)
    assert (fetched(tmp_path, **from_archive(f"file://{tmp_path}/a%20b.tgz")) / "train.py").exists()
    with pytest.raises(fetch.FetchError, match="none: No such file"):
        fetched(tmp_path, **from_archive(f"file://{tmp_path}/none"))


def test_a_packed_folder(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(CODE)
    assert (fetched(tmp_path, packed=str(tmp_path / "packed")) / "train.py").exists()


@pytest.mark.parametrize("start", ["none", "train.py", "up"])
def test_a_start_that_is_not_there_is_said(tmp_path: Path, start: str) -> None:
    (tmp_path / "packed").write_bytes(CODE)
    with pytest.raises(fetch.FetchError, match=f"the folder that was submitted has no folder '{start}'"):
        fetched(tmp_path, start, packed=str(tmp_path / "packed"))
    assert os.listdir(tmp_path) == ["packed"]


def test_an_archive_in_an_s3_store(tmp_path: Path) -> None:
    with s3_store("models") as system:
        system.pipe("models/code.tgz", CODE)
        assert (fetched(tmp_path, **from_archive("s3://models/code.tgz")) / "train.py").exists()
        with pytest.raises(fetch.FetchError, match=r"s3://models/none\.tgz: there is no such file"):
            fetched(tmp_path, **from_archive("s3://models/none.tgz"))


class WebHdfs(http.server.BaseHTTPRequestHandler):
    """The two calls of WebHDFS that reading takes: GETFILESTATUS, and OPEN, which leads elsewhere."""

    def do_GET(self) -> None:
        server: Any = self.server
        parts = urllib.parse.urlsplit(self.path)
        asked = {name.lower(): value[0] for name, value in urllib.parse.parse_qs(parts.query).items()}
        operation = asked["op"].upper()
        server.seen.append((operation, None))
        if parts.path == "/data":
            first = int(asked["offset"])
            self.answer(200, CODE[first : first + int(asked["length"])])
        elif parts.path != "/webhdfs/v1/models/code.tgz":
            error = {
                "exception": "FileNotFoundException",
                "javaClassName": "x",
                "message": "File does not exist",
            }
            self.answer(404, json.dumps({"RemoteException": error}).encode())
        elif operation == "GETFILESTATUS":
            status = {"type": "FILE", "length": len(CODE), "pathSuffix": "", "modificationTime": 0}
            self.answer(200, json.dumps({"FileStatus": status}).encode())
        else:
            self.send_response(307)
            self.send_header("Location", f"{server.url}/data?{parts.query}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header(
            "Content-Type", "application/json" if body[:1] == b"{" else "application/octet-stream"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def test_an_archive_in_hdfs_by_its_web_interface(tmp_path: Path) -> None:
    pytest.importorskip("requests")
    with serving(WebHdfs) as server:
        place = server.url.removeprefix("http://")
        code = fetched(tmp_path, **from_archive(f"webhdfs://{place}/models/code.tgz"))
        assert (code / "train.py").exists()
        assert {"GETFILESTATUS", "OPEN"} <= {operation for operation, _ in server.seen}
        with pytest.raises(fetch.FetchError, match="none: there is no such file"):
            fetched(tmp_path, **from_archive(f"webhdfs://{place}/none"))


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError, match=r"gs://models/x: a package is missing .*gcsfs"):
        fetched(tmp_path, **from_archive("gs://models/x"))


# --- The program --------------------------------------------------------------------------------------

Program = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def run(config: dict[str, Any], **environment: str) -> tuple[int, dict[str, Any], str]:
        (tmp_path / "config").write_text(json.dumps(config))
        arguments = [str(tmp_path / name) for name in ("config", "code", "word")]
        done = subprocess.run(
            [sys.executable, "-I", "-m", "paceline.agent.fetch", *arguments],
            env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, json.loads((tmp_path / "word").read_text()), done.stdout + done.stderr

    return run


def test_the_last_word(repository: Path, tmp_path: Path, program: Program) -> None:
    config = {"git": {"url": f"file://{repository}", "revision": "v1"}, "start": "."}
    code, word, output = program(config)
    commit = git(repository, "rev-parse", "v1^0")
    assert (code, word) == (0, {"notes": [f"code: commit {commit} of file://{repository}"]})
    assert commit in output
    assert (tmp_path / "code" / "train.py").stat().st_mode & 0o777 == 0o666, "for any user of the container"
    code, word, output = program({**config, "start": "none"})
    assert (code, word) == (1, {"error": f"file://{repository} has no folder 'none' to start in"})
    assert word["error"] in output
    assert (tmp_path / "code").is_dir(), "what was there stays"


def test_no_word_holds_a_password(tmp_path: Path, program: Program) -> None:
    config = {**from_archive("file:///none/t0ken"), "start": "."}
    code, word, output = program(config, **{fetch.PASSWORD: "t0ken"})
    assert code == 1
    assert "file:///none/***" in word["error"]
    assert "t0ken" not in json.dumps(word) + output
