"""What a description of processors says."""

import pytest

from paceline.training import processors


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("processor : 0\nflags\t\t: fpu avx2 avx512_bf16 fma\n", True),
        ("flags : amx_tile amx_bf16\n", True),
        ("Features : fp asimd bf16\n", True),
        ("flags : fpu avx2 fma\nbugs : avx512_bf16\n", False),
        ("processor : 0\n", None),
        ("", None),
    ],
)
def test_instructions_for_bfloat16(tmp_path, text, found):
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert processors.has_bfloat16(path) is found


def test_a_system_that_does_not_say(tmp_path):
    assert processors.has_bfloat16(tmp_path / "missing") is None
