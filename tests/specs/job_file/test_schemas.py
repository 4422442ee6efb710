"""The JSON Schema says of a file what the parser says, as far as a schema can.

The checker below knows the part of JSON Schema that ours uses, and fails on any other word.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from paceline import specs

SCHEMA = specs.json_schema()
NOTES = {"description", "examples", "default", "title", "$schema", "$id", "$defs"}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def _is(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _others(schema: dict[str, Any], value: dict[str, Any]) -> list[Any]:
    patterns = schema.get("patternProperties", {})
    known = schema.get("properties", {})
    return [v for k, v in value.items() if k not in known and not any(re.search(p, k) for p in patterns)]


#: Each word of JSON Schema: (the schema it stands in, what it says, the value) to whether the value fits.
WORDS: dict[str, Callable[[dict[str, Any], Any, Any], bool]] = {
    "$ref": lambda schema, rule, value: check(SCHEMA["$defs"][rule.removeprefix("#/$defs/")], value),
    "type": lambda schema, rule, value: any(
        _is(value, t) for t in ([rule] if isinstance(rule, str) else rule)
    ),
    "enum": lambda schema, rule, value: value in rule,
    "const": lambda schema, rule, value: bool(value == rule),
    "anyOf": lambda schema, rule, value: any(check(option, value) for option in rule),
    "required": lambda schema, rule, value: all(key in value for key in rule),
    "properties": lambda schema, rule, value: all(check(rule[k], v) for k, v in value.items() if k in rule),
    "patternProperties": lambda schema, rule, value: all(
        check(part, v) for pattern, part in rule.items() for k, v in value.items() if re.search(pattern, k)
    ),
    "additionalProperties": lambda schema, rule, value: all(
        rule is not False and check(rule, other) for other in _others(schema, value)
    ),
    "propertyNames": lambda schema, rule, value: all(check(rule, key) for key in value),
    "items": lambda schema, rule, value: all(check(rule, item) for item in value),
    "minItems": lambda schema, rule, value: len(value) >= rule,
    "maxLength": lambda schema, rule, value: len(value) <= rule,
    "pattern": lambda schema, rule, value: re.search(rule, value) is not None,
    "minimum": lambda schema, rule, value: bool(value >= rule),
    "maximum": lambda schema, rule, value: bool(value <= rule),
    "exclusiveMinimum": lambda schema, rule, value: bool(value > rule),
}


def check(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value fits; the type comes first so that the other words can rely on it."""
    words = sorted((word for word in schema if word not in NOTES), key=lambda word: word != "type")
    return all(WORDS[word](schema, schema[word], value) for word in words)


def load(text: str) -> Any:
    return yaml.safe_load(text.replace("1e-3", "0.001"))


def test_it_is_plain_json_of_the_right_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(SCHEMA["required"]) == {"apiVersion", "kind", "metadata", "spec"}


def test_every_reference_leads_somewhere() -> None:
    names = re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA))
    assert names
    assert set(names) <= set(SCHEMA["$defs"])


def test_every_field_is_described() -> None:
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            assert field.get("description"), name


def test_good_files_fit(good: str) -> None:
    assert check(SCHEMA, load(good))
    for kind in specs.TEMPLATES:
        assert check(SCHEMA, load(specs.template(kind)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v1alpha1", "v2"),
        ("  name: clicks", "  name: Clicks"),
        ("  name: clicks", "  nam: clicks"),
        ("command: [python, train.py,", "command: [[python], train.py,"),
        ("threads: 3", "threads: many"),
        ("memory: 1Gi", "memory: 1GiB"),
        ("cpu: 1500m", "cpu: 1500 m"),
        ("replicas: 2", "replicas: two"),
        ("replicas: 2", "replicas: -1"),
        ("strategy: colocate", "strategy: near"),
        ("active_deadline: 1h30m", "active_deadline: soon"),
        ("name: adagrad", "name: sgd"),
        ("  roles:", "  rolls:"),
        ("read_only: yes", "read_only: maybe"),
        ("{MODE: worker}", "{A=B: worker}"),
    ],
)
def test_bad_files_do_not_fit(good: str, old: str, new: str) -> None:
    assert old in good
    assert not check(SCHEMA, load(good.replace(old, new, 1)))
