"""Custom resource definitions of other operators, as upstream has them, for the API server of the tests."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.real_clusters import found, kubectl, until

FOLDER = Path(__file__).parents[3] / "shared" / "crds"
#: Of later servers than 1.20, which refuses them; they say nothing of types.
_LATER = ("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def install() -> None:
    """Make all of them known, or skip the test when they are not here.

    They are too long for the annotation that `kubectl apply` writes.
    """
    if not FOLDER.is_dir():
        pytest.skip(f"the definitions of TFJob and Volcano are not there: {FOLDER}")
    for path in sorted(FOLDER.glob("*.yaml")):
        for definition in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            name = definition["metadata"]["name"]
            if kubectl("get", "crd", name, "--ignore-not-found", "-o", "name"):
                continue
            kubectl("create", "--validate=false", "-f", "-", given=json.dumps(_for_all_servers(definition)))
            until(functools.partial(_is_served, name), functools.partial(found, "crd", name))


def _is_served(name: str) -> bool:
    conditions = found("crd", name).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _for_all_servers(part: Any) -> Any:
    if isinstance(part, list):
        return [_for_all_servers(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _for_all_servers(value)
        for key, value in part.items()
        if key not in _LATER and not (key == "default" and value in ("", {}, []))
    }
