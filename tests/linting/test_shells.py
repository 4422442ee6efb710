"""What shell lines do with the exit code of the program that they start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.linting import shells


def script(line: str, *options: str) -> shells.Script:
    found = shells.script_of(["bash", *options, "-c", line])
    assert found is not None
    return found


@pytest.mark.parametrize(
    "line",
    [
        "nohup python train.py > out.txt 2>&1 &", "cd /app && python3 train.py&", "setsid ./train.sh & ",
        "python train.py &\n",
    ],
)  # fmt: skip
def test_a_program_in_the_background_is_seen(line):
    assert shells.is_left_behind(script(line))
    assert shells.hidden_failure(script(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        "python train.py", "python watch.py & python train.py", "python train.py & wait", "echo 'a &'",
        "python train.py &> log", "python train.py 2>&1", "(python a.py &)", "python 'unbalanced &",
        "if true; then python train.py & fi",
    ],
)  # fmt: skip
def test_what_stays_in_the_foreground_or_is_waited_for(line):
    assert not shells.is_left_behind(script(line))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("python train.py 2>&1 | tee train.log", "| tee train.log"),
        ("python train.py |& tee train.log", "|& tee train.log"),
        ("cd /app && PYTHONPATH=. exec python train.py | grep -v WARN", "| grep -v WARN"),
        ("python train.py; echo done", "; echo done"),
        ("python train.py\necho done\n", "; echo done"),
        ("./run.sh --steps 3; sleep 5; date", "; sleep 5"),
        ("torchrun train.py || true", "|| true"),
        ("python train.py | tee a && echo ok", "| tee a"),
    ],
)
def test_what_hides_a_failure_is_named(line, what):
    assert shells.hidden_failure(script(line)) == what


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("cd /app; python train.py", ()), ("python prepare.py; python train.py", ()),
        ("python train.py && echo done", ()), ("python train.py; exit $?", ()),
        ("set -e; python train.py; echo done", ()), ("python train.py; echo done", ("-e",)),
        ("python train.py; echo done", ("-eu",)), ("python train.py | tee log", ("-o", "pipefail")),
        ("set -o pipefail; python train.py | tee log", ()), ("cat files | xargs python train.py", ()),
        ("python -c 'a; b | c'", ()), ('python train.py "a|b;c"', ()), ("python train.py || exit 3", ()),
        ("for f in *; do python train.py $f; done; echo", ()), ("python train.py \\\n  --steps 3", ()),
    ],
)  # fmt: skip
def test_what_hides_nothing(line, options):
    assert shells.hidden_failure(script(line, *options)) is None


def test_what_is_no_script_of_a_shell():
    for command in (["python", "-c", "a | b"], ["sh", "train.sh", "-c", "x"], ["sh"], [], ["bash", "-c"]):
        assert shells.script_of(command) is None
    assert shells.script_of(["/bin/bash", "-euo", "pipefail", "-c", "x"]) == (4, "x", True, True)


@given(st.text("ab |&;()<>\\\n'\"#$ python./", max_size=60) | st.text(max_size=30))
def test_any_line_is_read(line):
    shells.is_left_behind(script(line))
    shells.hidden_failure(script(line))
