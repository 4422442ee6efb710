"""Scripts of the styles that public scripts have: their steps, losses, batches and variables are seen."""

from __future__ import annotations

import re
import time

import pytest
from support import interpreters
from support.styles import SCRIPTS, STYLES, VERSIONS

from paceline.sources import traces
from paceline.specs.job_file import variable_files

pytestmark = pytest.mark.slow
STEPS = 150
TRACE = "2026-01-02T03-04-05.678Z"
#: What a graph's steps are made by here, in one process.
NAMES = [name for name, style in STYLES.items() if style.is_session and name != "monitored"]
RUNS = [
    pytest.param(
        name, version, id=f"{name}-{version or 'here'}", marks=[pytest.mark.nightly] if version else []
    )
    for name in NAMES
    for version in (None, *STYLES[name].versions)
    # What is here is the newest.
    if version is not None or STYLES[name].until == VERSIONS[-1]
]


@pytest.mark.parametrize(("name", "version"), RUNS)
def test_what_is_seen_of_a_style(runner, name, version):
    style, python = STYLES[name], str(interpreters.with_tensorflow_or_skip(version))
    (runner.folder / "traces").mkdir()
    (runner.folder / "traces" / "request").write_text(TRACE)
    begun = time.time()
    done = runner.run(style.path, f"--steps={STEPS}", python=python)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^step (\d+) loss (\S+)$", done.stdout, re.MULTILINE)
    assert len(lines) >= STEPS
    printed = [float(loss) for _, loss in lines]

    reports = runner.reports("step")
    assert sum(each["steps"] for each in reports) == len(lines), runner.reports("instrumentation")
    assert all(each["examples"] == style.batch * each["steps"] for each in reports)
    for each in reports:
        assert each["loss"] is None or any(each["loss"] == pytest.approx(loss, rel=1e-6) for loss in printed)
    assert reports[0]["loss"] is not None
    variables = {each.name for each in variable_files.load_variables(runner.folder / "variables.json")}
    assert variables == style.variables
    assert not [each for each in runner.reports("instrumentation") if "cannot be looked" in each["message"]]
    taken = traces.read(runner.folder, TRACE)
    assert taken.broken == ()
    for split in taken.traces[0].splits:
        assert begun < split.start_at < time.time()
        assert 0 < split.compute_microseconds <= split.total_microseconds < 1e6 * (time.time() - begun)


def test_a_launchers_trainer_is_seen(runner):
    done = runner.run(str(SCRIPTS / "launcher.py"), STYLES["feed"].path, f"--steps={STEPS}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("starting\nstep 1 loss")
    assert sum(each["steps"] for each in runner.reports("step")) == STEPS


UNCAUGHT = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [])
w = tf.get_variable("w", [])
train = tf.train.GradientDescentOptimizer(0.1).minimize(w * x)

def go(session):
    session.run(train)

with tf.Session() as session:
    session.run(w.initializer)
    go(session)
"""


def test_an_uncaught_error_shows_none_of_our_frames(runner):
    seen = runner.code(UNCAUGHT)
    alone = runner.code(UNCAUGHT, environment=runner.environment(PACELINE_INSTRUMENTATION="off"))
    assert seen.returncode == alone.returncode == 1
    printed, _, rest = seen.stderr.partition("During handling")
    assert "in go" in rest
    assert "paceline_instrumentation" not in printed.replace("\n", "")
