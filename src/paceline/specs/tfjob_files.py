"""Kubeflow's TFJobs read as job files, with a list of what a job file has no words for.

A TFJob that `rendering.tfjobs` made is read back together with its config map.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Iterator

import yaml

from paceline.errors import InvalidInput
from paceline.specs import checks, documents, dumping, files, problems, tfjob_readings
from paceline.specs.tfjob_readings import Fields

_HINT = "a TFJob starts with apiVersion: kubeflow.org/v1, kind: TFJob"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A job file, and what of the TFJob is not in it: each by its path, with its value or a reason."""

    text: str
    lost: tuple[str, ...]


def convert(path: str | os.PathLike[str]) -> Conversion:
    """Return the job file that a file with a TFJob makes.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no TFJob, or one that makes no job.
    """
    name = os.fspath(path)
    return convert_text(documents.decode(checks.read_bytes(name, _HINT), name), name)


def convert_text(text: str, file: str) -> Conversion:
    """Return the job file that a text with a TFJob makes; the file's name is for messages.

    Raises:
        InvalidInput: it is no TFJob, or one that makes no job.
    """
    shown = problems.visible(file)
    try:
        found = list(_objects(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{shown}: it is no YAML: {problems.visible(str(error))}", _HINT) from error
    tfjobs = [each for each in found if each.get("kind") == "TFJob"]
    if not tfjobs:
        raise InvalidInput(f"{shown}: there is no TFJob in it", _HINT)
    if len(tfjobs) > 1:
        raise InvalidInput(
            f"{shown}: there are {len(tfjobs)} TFJobs in it; a job file holds one job",
            "convert each in a file of its own",
        )
    (tfjob,) = tfjobs
    told = next((each for each in found if _is_told_by(each, tfjob)), {})
    try:
        reading = tfjob_readings.Reading(copy.deepcopy(tfjob), told.get("data") or {})
        document = reading.document()
    except tfjob_readings.Unreadable as error:
        raise InvalidInput(f"{shown}: {problems.visible(error.message)}", error.hint) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        message = f"{shown}: this is no TFJob as Kubeflow has them: {problems.visible(repr(error))}"
        raise InvalidInput(message, _HINT) from error
    spec = files.parse_job(json.dumps(document, ensure_ascii=False), file=f"the job of {file}").spec
    spec = reading.placed(spec)
    others = [each for each in found if each is not tfjob and each is not told]
    return Conversion(text=dumping.dump_job(spec), lost=(*reading.lost(), *map(_passed_over, others)))


def _objects(text: str) -> Iterator[Fields]:
    """Yield the objects of a stream of them, those of lists too."""
    for each in yaml.load_all(text, Loader=_Loader):
        if isinstance(each, dict):
            items = each.get("items") if str(each.get("kind")).endswith("List") else None
            yield from (item for item in items if isinstance(item, dict)) if items else (each,)


def _is_told_by(each: Fields, tfjob: Fields) -> bool:
    """Whether this is the config map of the agents of a TFJob that Paceline has rendered."""
    name = each.get("kind") == "ConfigMap" and (each.get("metadata") or {}).get("name")
    return bool(name) and name == (tfjob.get("metadata") or {}).get("name")


def _passed_over(each: Fields) -> str:
    name = (each.get("metadata") or {}).get("name")
    return f"{each.get('kind')} {name}: only the TFJob is read"


class _Loader(yaml.SafeLoader):
    """Keeps dates and the like as they are written, and takes no aliases: TFJobs have none, bombs do."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
