"""Help and completion come from the catalogue and load nothing heavy; the catalogue fits the modules."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys

import click
import pytest

from paceline import specs
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.surfaces.cli import catalogue, main, options, verbs

HEAVY = (
    "rich", "pydantic", "sqlalchemy", "alembic", "psutil", "yaml", "pandas", "jinja2", "tensorflow",
    "paceline.stores", "paceline.specs", "paceline.linting", "paceline.engines.local.engine",
)  # fmt: skip

PROBE = """
import atexit, sys
atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))
from paceline.surfaces.cli.main import main
main()
"""


def loaded(arguments: list[str], environment: dict[str, str]) -> tuple[str, list[str]]:
    """Return what a command line prints, and which of the heavy modules it loads."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], env={**os.environ, **environment},
        capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    modules = set(done.stderr.partition("LOADED ")[2].split())
    return done.stdout, [name for name in HEAVY if name in modules]


def test_help_loads_nothing_heavy() -> None:
    printed, heavy = loaded(["--help"], {})
    assert "submit" in printed
    assert heavy == []


@pytest.mark.parametrize("verb", ["run", "top", "logs", "lint", "init", "doctor"])
def test_help_of_a_verb_loads_nothing_heavy(verb: str) -> None:
    printed, heavy = loaded([verb, "--help"], {})
    assert f"paceline {verb}" in printed
    assert heavy == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["paceline", "l"], ["list", "logs", "lint"]),
        (["paceline", "logs", "--ro"], ["--role"]),
        (["paceline", "wait", "--for", "s"], ["succeeded", "step="]),
        (["paceline", "--home", "HOME", "top", "al"], ["alpha"]),
        (["paceline", "top", "--home", "HOME", ""], ["beta", "alpha"]),
    ],
)
def test_completion_completes_and_loads_nothing_heavy(
    words: list[str], expected: list[str], tmp_path: os.PathLike[str]
) -> None:
    for when, name in enumerate(("alpha", "beta")):
        folder = os.path.join(tmp_path, "runs", name)
        os.makedirs(folder)
        os.utime(folder, (1e9 + when, 1e9 + when))
    line = " ".join(words).replace("HOME", str(tmp_path))
    environment = {
        "_PACELINE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)
    }  # fmt: skip
    printed, heavy = loaded([], environment)
    completed = [item.partition(",")[2] for item in printed.splitlines()]
    assert [name for name in completed if not name.startswith("-") or words[-1].startswith("-")] == expected
    assert heavy == []


def test_import_of_the_package_is_light() -> None:
    code = f"import sys, paceline; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_catalogue_names_every_verb_and_no_other() -> None:
    modules = {module.name for module in pkgutil.iter_modules(verbs.__path__)}
    assert set(catalogue.VERBS) == modules
    for verb in catalogue.VERBS.values():
        command = importlib.import_module(verb.module).command
        assert isinstance(command, click.Command)
        assert command.name == verb.name
        assert command.get_short_help_str(limit=100) == verb.summary
        assert command.help, verb.name


def test_words_that_are_written_out_fit_the_model() -> None:
    from paceline.surfaces.cli.verbs import init
    from paceline.surfaces.cli.verbs import list as list_verb

    assert tuple(options.role_type().choices) == tuple(Role)
    assert tuple(JobPhase) == list_verb.PHASES
    assert tuple(specs.TEMPLATES) == init.TEMPLATES


def test_exit_codes_are_those_of_the_errors() -> None:
    from paceline import errors

    kinds = [errors.PacelineError, *errors.PacelineError.__subclasses__()]
    assert {kind.exit_code for kind in kinds} <= {code for code, _ in catalogue.EXIT_CODES}


def test_every_option_has_a_help() -> None:
    root = click.Context(main.cli)
    for name in catalogue.VERBS:
        command = main.cli.get_command(root, name)
        assert command is not None
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, (name, parameter.name)
