"""What stands without quotes is a text to every reader of YAML, not to PyYAML alone."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.specs.job_file import dumping
from paceline.specs.yaml_text import plain_texts
from paceline.specs.yaml_text.writings import YamlStyle, text

#: To go-yaml, by which kubectl and Helm read, these are no texts: tried with v2.4 and v3.0.
MISREAD = (
    "y", "Y", "n", "N", "0o17", "0809", "25921e05", "12e4", "7e1", "-.5", "+.5", "2001-1-1", "08", "-08",
    "+08", "0X1f", "1E5", "1e+5", "1.e5", "1_e5", "1e1_0", "+_4", "6E-815", "99999999999999999999", "1" * 500,
)  # fmt: skip
#: And these to other readers.
OTHERS = (
    "yes",
    "No",
    "oN",
    "off",
    "TRUE",
    "~",
    "null",
    "",
    ".inf",
    "NaN",
    "0x1F",
    "017",
    "1_000",
    "12:30:45",
    "<<",
)
PLAIN = (
    "1Gi",
    "500m",
    "10s",
    "v1",
    "1.10.2",
    "1-2",
    "e5",
    "0xg",
    "08h",
    "none",
    "a1e5",
    "+",
    "-",
    "/data/1e5",
)
#: What `go-yaml` takes for a float, after it has left out underscores (``resolve.go``: yamlStyleFloat).
GO_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@pytest.mark.parametrize("value", [*MISREAD, *OTHERS])
def test_what_may_be_read_as_something_else_is_quoted(value):
    for written in (
        dumping.dump_document({"label": value}).removeprefix("label: ").rstrip("\n"),
        text(value, YamlStyle(step=2, item_step=2, is_json=False)),
    ):
        assert written[0] in "'\"", written
        assert yaml.safe_load(written) == value
    assert dumping.dump_document({value: 1}).removeprefix("? ")[0] in "'\""


@pytest.mark.parametrize("value", PLAIN)
def test_what_is_a_text_to_all_stays_as_it_is(value):
    assert not plain_texts.is_ambiguous(value)
    if value not in "+-":  # These are quoted for another reason.
        assert dumping.dump_document({"label": value}) == f"label: {value}\n"


@given(st.text("0123456789eE+-._xXobOB:", max_size=9) | st.text(max_size=9))
@example("_0")
def test_a_number_to_go_is_never_plain(value):
    # Go looks at the first character before it leaves any out (``resolve.go``: resolveTable).
    if not value.startswith("_") and GO_FLOAT.fullmatch(value.replace("_", "")):
        assert plain_texts.is_ambiguous(value)
    assert yaml.safe_load(dumping.dump_document({"a": [value], "b": {"c": value}})) == {
        "a": [value],
        "b": {"c": value},
    }
