import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import errors, specs


def load(tmp_path, text):
    path = tmp_path / "variables.yaml"
    path.write_text(text)
    return specs.load_variables(path)


def test_a_file_by_hand_needs_names_and_shapes(tmp_path):
    found = load(tmp_path, "variables:\n- {name: a, shape: [10, 4], sparse: true}\n- {name: b, shape: []}\n")
    assert [(one.name, one.shape, one.sparse, one.step_bytes) for one in found] == [
        ("a", (10, 4), True, None),
        ("b", (), False, None),
    ]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "the file is empty; a file of variables starts with variables"),
        ("- 1", "1:1", "a file of variables is a mapping"),
        ("variables: 3", "1:12", "this is '3'; a list is wanted"),
        ("variables: [{name: a}]", "1:13", "the key is missing (rows first; empty for a scalar)"),
        ("variables: [{name: a, shap: [1]}]", "1:23", "unknown key 'shap'"),
        ("variables: [{name: a, shape: [0]}]", "1:31", "out of range"),
        (
            "variables:\n- {name: a, shape: [1]}\n- {name: a, shape: [1]}",
            "3:10",
            "there is a variable 'a' already",
        ),
        ("variables: [{name: a, shape: [1], row_shares: [1]}]", "1:47", "only a sparse variable"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, place, message):
    with pytest.raises(specs.DocumentError) as caught:
        load(tmp_path, text)
    assert f"variables.yaml:{place}" in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(errors.NotFound, match="there is no such file"):
        specs.load_variables(tmp_path / "none.json")


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "variables.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with pytest.raises(errors.InvalidInput):
        specs.load_variables(path)
