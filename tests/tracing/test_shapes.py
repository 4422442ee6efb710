"""Shapes as TensorFlow's profiler writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.tracing import shapes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "(float[256,16];int32[256];int32[])",
            [("float", (256, 16), 16384), ("int32", (256,), 1024), ("int32", (), 4)],
        ),
        (
            "(;;float[];float[30,16];int64[30])",
            [("float", (), 4), ("float", (30, 16), 1920), ("int64", (30,), 240)],
        ),
        ("(;int32[0])", [("int32", (0,), 0)]),
        ("(string[4];variant[];resource[])", []),
        ("()", []),
        ("", []),
    ],
)
def test_inputs_with_a_size(text, found):
    assert [(each.type, each.dimensions, each.bytes) for each in shapes.read(text)] == found


def test_what_may_be_an_id():
    assert [each.is_integer for each in shapes.read("(float[1];int32[1];uint8[1];bool[1])")] == [
        False, True, True, False,
    ]  # fmt: skip


@given(st.text(alphabet="(float[];,32int1?)é", max_size=60))
def test_any_text(text):
    assert all(each.bytes >= 0 for each in shapes.read(text))
