"""What Python imports before a script leaves no trace where nothing is to be seen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support import interpreters

from paceline.instrumentation import __file__ as found

FOLDER = Path(found).parent
LOOK = """
from __future__ import print_function
import sys
try:
    import sitecustomize
    print("sitecustomize", sitecustomize.__file__, sitecustomize.__name__)
except ImportError as error:
    print(type(error).__name__, str(error).replace("'", ""))
print(sorted(name for name in sys.modules if "customize" in name))
print([path for path in sys.path if "instrumentation" in path])
"""


@pytest.fixture(params=interpreters.found(), ids=lambda path: path.parent.parent.name)
def python(request):
    return str(request.param)


def test_all_of_it_can_be_parsed_by_python_2_7():
    python = interpreters.of("2.7")
    if python is None:
        pytest.skip("there is no Python 2.7")
    code = "import sys\nfor name in sys.argv[1:]: compile(open(name).read(), name, 'exec')"
    files = [str(path) for path in FOLDER.rglob("*.py")]
    done = interpreters.run(python, "-c", code, *files)
    assert done.returncode == 0, done.stderr


def test_it_is_as_if_it_were_not_there(runner, python):
    without = {**runner.environment(), "PYTHONPATH": ""}
    expected = runner.code(LOOK, python=python, environment=without)
    found = runner.code(LOOK, "-s", python=python, environment={**without, "PYTHONPATH": str(FOLDER)})
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)
    assert found.returncode == expected.returncode
    assert not runner.reports_file.exists()


def test_the_next_one_runs_as_it_would(runner, python, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("from __future__ import print_function\nprint('own', __name__)\n")
    without = {**runner.environment(), "PYTHONPATH": str(own)}
    expected = runner.code(LOOK, python=python, environment=without)
    both = {**without, "PYTHONPATH": os.pathsep.join((str(FOLDER), str(own)))}
    found = runner.code(LOOK, python=python, environment=both)
    assert expected.stdout.startswith("own sitecustomize")
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)


def test_the_next_one_may_fail_as_it_would(runner, python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module_at_all\n")
    without = {**runner.environment(), "PYTHONPATH": str(tmp_path)}
    expected = runner.code("print(1)", python=python, environment=without)
    both = {**without, "PYTHONPATH": os.pathsep.join((str(FOLDER), str(tmp_path)))}
    found = runner.code("print(1)", python=python, environment=both)
    # Python 2.7 takes any failed import for "there is none".
    assert ("no_such_module_at_all" in expected.stderr) == ("2.7" not in python)
    assert found.stdout == expected.stdout
    assert found.stderr.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_options_keep_it_away(runner, option):
    done = runner.code("import sys; print('paceline_instrumentation' in sys.modules)", option)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("more", [{"PACELINE_INSTRUMENTATION": "off"}, {"PACELINE_REPORT_FILE": ""}])
def test_switched_off_it_waits_for_nothing(runner, more):
    code = "import sys; print(sorted({type(each).__name__ for each in sys.meta_path}))"
    done = runner.code(code, environment=runner.environment(**more))
    assert "ModuleWatch" not in done.stdout
    assert "ModuleWatch" in runner.code(code).stdout


def test_a_broken_copy_of_it_does_not_keep_a_script_from_running(runner, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "copy" / "paceline_instrumentation" / "wiring.py").write_text("this is no Python")
    done = runner.code("print(1)", environment=runner.environment(PYTHONPATH=str(tmp_path / "copy")))
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_a_broken_tensorflow_fails_as_it_would(runner, tmp_path):
    package = tmp_path / "broken" / "tensorflow" / "python" / "client"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    (package / "session.py").write_text("BaseSession = None\nprint('imported', __spec__.loader.name)\n")
    code = "from tensorflow.python.client import session as s; print(s.__loader__, s.__spec__.loader)"
    without = runner.environment(PYTHONPATH=str(tmp_path / "broken"))
    both = runner.environment(PYTHONPATH=os.pathsep.join((str(FOLDER), str(tmp_path / "broken"))))
    found, expected = (runner.code(code, environment=each) for each in (both, without))

    def apart_from_addresses(text: str) -> list[str]:
        return [word.split(" at 0x")[0] for word in text.splitlines()]

    assert found.returncode == 0, found.stderr
    assert apart_from_addresses(found.stdout) == apart_from_addresses(expected.stdout)
    assert "cannot be looked into" in runner.reports("instrumentation")[0]["message"]


def test_every_file_is_ascii() -> None:
    # Python 2.7 reads no other text without a line that names its encoding.
    files = sorted(FOLDER.rglob("*.py"))
    assert files
    assert [path.name for path in files if not path.read_bytes().isascii()] == []
