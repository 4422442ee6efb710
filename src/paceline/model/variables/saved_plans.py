"""Plans of variables as plain values, for a file or for the settings of a replica.

A document holds each variable once, and under ``ps`` the parameter servers of its shards in order. The
platform and the training library both read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.jobs.job_specs import API_VERSION
from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

KIND = "VariablePlan"
_ORDERS = tuple(order.value for order in RowOrder)
_OPTIONAL = ("sparse", "element_bytes", "slots", "step_bytes", "row_shares")


def write(plan: Plan, *, traffic: bool = True) -> dict[str, Any]:
    """Return a plan as plain values, with or without the measured traffic of its variables."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "servers": plan.servers,
        "variables": [_written(plan.of(variable.name), traffic) for variable in plan.variables],
    }


def _written(shards: Sequence[Shard], traffic: bool) -> dict[str, Any]:
    variable = shards[0].variable
    measured: dict[str, Any] = {}
    if traffic and variable.step_bytes is not None:
        measured = {"step_bytes": variable.step_bytes, "row_shares": list(variable.row_shares)}
    return {
        "name": variable.name,
        "shape": list(variable.shape),
        "sparse": variable.sparse,
        "element_bytes": variable.element_bytes,
        "slots": variable.slots,
        "rows": shards[0].layout.order.value,
        "ps": [shard.server for shard in shards],
        **measured,
    }


def read(document: object) -> Plan:
    """Return the plan that a document of ``write`` describes.

    Raises:
        ValueError: the document is not a plan; the message names the place.
    """
    head = _mapping(document, "the plan", ("apiVersion", "kind", "servers", "variables"))
    if (head["apiVersion"], head["kind"]) != (API_VERSION, KIND):
        raise ValueError(f"apiVersion and kind are not {API_VERSION} and {KIND}")
    servers = _whole(head["servers"], "servers", 1)
    shards: list[Shard] = []
    for number, each in enumerate(_list(head["variables"], "variables")):
        found = _read(each, f"variables[{number}]", servers)
        if any(shard.variable.name == found[0].variable.name for shard in shards):
            raise ValueError(f"variables[{number}]: there is a variable {found[0].variable.name!r} already")
        shards += found
    return Plan(servers=servers, shards=tuple(shards))


def _read(raw: object, place: str, servers: int) -> list[Shard]:
    block = _mapping(raw, place, ("name", "shape", "rows", "ps"), _OPTIONAL)
    if not isinstance(block["name"], str) or not block["name"]:
        raise ValueError(f"{place}.name: a name is wanted")
    if block["rows"] not in _ORDERS:
        raise ValueError(f"{place}.rows: one of {', '.join(_ORDERS)} is wanted")
    variable = Variable(
        name=block["name"],
        shape=tuple(_wholes(block["shape"], f"{place}.shape", 1)),
        sparse=block.get("sparse") is True,
        element_bytes=_whole(block.get("element_bytes", 4), f"{place}.element_bytes", 1),
        slots=_whole(block.get("slots", 0), f"{place}.slots", 0),
        step_bytes=None if "step_bytes" not in block else _number(block["step_bytes"], f"{place}.step_bytes"),
        row_shares=tuple(
            _number(share, f"{place}.row_shares")
            for share in _list(block.get("row_shares", []), f"{place}.row_shares")
        ),
    )
    on = _wholes(block["ps"], f"{place}.ps", 0)
    if any(server >= servers for server in on):
        raise ValueError(f"{place}.ps: there is no ps {max(on)}, as the plan has {servers}")
    try:
        layout = RowLayout(rows=variable.rows, shards=len(on), order=RowOrder(block["rows"]))
    except ValueError as error:
        raise ValueError(f"{place}.ps: {error}") from error
    return [
        Shard(variable=variable, layout=layout, index=index, server=server) for index, server in enumerate(on)
    ]


def _mapping(
    raw: object, place: str, wanted: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError(f"{place}: a mapping is wanted")
    missing = [key for key in wanted if key not in raw]
    unknown = [key for key in raw if key not in (*wanted, *optional)]
    if missing or unknown:
        what = f"has no {missing[0]!r}" if missing else f"has an unknown key {unknown[0]!r}"
        raise ValueError(f"{place} {what}")
    return raw


def _list(raw: object, place: str) -> list[Any]:
    if not isinstance(raw, list):
        raise ValueError(f"{place}: a list is wanted")
    return raw


def _wholes(raw: object, place: str, least: int) -> list[int]:
    return [_whole(each, place, least) for each in _list(raw, place)]


def _whole(raw: object, place: str, least: int) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < least:
        raise ValueError(f"{place}: a whole number of at least {least} is wanted, not {raw!r}")
    return raw


def _number(raw: object, place: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw < float("inf"):
        raise ValueError(f"{place}: a number of at least 0 is wanted, not {raw!r}")
    return float(raw)
