"""Which errors a second try may mend, and which it does not."""

import errno
import os

import pytest

from paceline.training import connections, errors


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(connections, "_DELAYS_SECONDS", (0.0, 0.0))


def tries_of(number):
    """Return how often an action is tried that fails with such an error, and what is said."""
    tries = []

    def action():
        tries.append(number)
        raise OSError(number, os.strerror(number))

    with pytest.raises(errors.ExportError) as found:
        connections.retried(
            "/models/a", action, error_type=errors.ExportError, refusal="it cannot be written"
        )
    return len(tries), str(found.value)


@pytest.mark.parametrize(
    "number",
    [errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.ENOENT, errno.EACCES],
)
def test_what_a_path_or_a_disk_refuses_is_said_at_once(number):
    tries, said = tries_of(number)
    assert tries == 1
    assert "it cannot be written" in said
    assert os.strerror(number) in said


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.EIO, errno.ETIMEDOUT, errno.ESTALE])
def test_what_may_pass_is_tried_again(number):
    tries, said = tries_of(number)
    assert tries == 3
    assert "the connection was lost 3 times" in said


def test_a_folder_that_is_a_file_is_no_file_to_read(tmp_path):
    (tmp_path / "a.csv").touch()
    with pytest.raises(errors.InputError, match="there is no such file"):
        connections.retried("a.csv/b", (tmp_path / "a.csv" / "b").read_bytes)
