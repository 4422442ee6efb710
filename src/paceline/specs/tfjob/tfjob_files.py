"""Conversion of Kubeflow's TFJobs to job files, with a list of what a job file cannot express.

A TFJob that `rendering.tfjobs` made is read together with its config map. YAML is read in the same way as job
files (`documents`), but values are interpreted as Kubernetes' own YAML reader interprets them. An error names
the place in the file.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from paceline.errors import InvalidInput
from paceline.model.jobs import job_specs
from paceline.rendering import tfjobs
from paceline.specs.job_file import checks, dumping, files
from paceline.specs.tfjob import tfjob_readings, tfjob_shapes
from paceline.specs.tfjob.tfjob_readings import Fields
from paceline.specs.tfjob.tfjob_shapes import Unreadable
from paceline.specs.yaml_text import documents, problems, streams
from paceline.specs.yaml_text.documents import Scalar, ScalarKind

_HINT = "a TFJob starts with apiVersion: kubeflow.org/v1, kind: TFJob"
_RENDER_FIRST = "render it first (helm template CHART, kustomize build, jinja2), and convert what that prints"
#: Kubeflow's versions before v1, and how to convert what is special in each.
_OLD = {
    "kubeflow.org/v1alpha1": "the list spec.replicaSpecs becomes spec.tfReplicaSpecs, with roles by name",
    "kubeflow.org/v1alpha2": "",
    "kubeflow.org/v1beta1": "",
    "kubeflow.org/v1beta2": "",
}
_MOVED = (
    "cleanPodPolicy, backoffLimit, activeDeadlineSeconds and ttlSecondsAfterFinished go to spec.runPolicy"
)
_BEFORE_V1 = ("replicaSpecs", "tfImage", "terminationPolicy")
_OCTAL = re.compile(r"([-+]?)0o?([0-7]+)", re.ASCII)
_TAG = re.compile(r"\{[{%]")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A job file, and the lost parts of the TFJob: the path of each part, with its value or a reason."""

    text: str
    lost: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Object:
    """A Kubernetes object of the file: its data, its document, and its path within the document."""

    data: Fields
    document: documents.Document
    above: documents.Path

    @property
    def kind(self) -> str:
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> Any:
        metadata = self.data.get("metadata")
        return metadata.get("name") if isinstance(metadata, dict) else None

    def refusal(
        self, path: str, message: str, hint: str | None = _HINT, *, is_key: bool = False
    ) -> problems.DocumentError:
        """Return the error about the value at a path of this object."""
        known = {_written(each): each for each in self.document.places}
        at = _written((*self.above, path) if path else self.above)
        while at not in known:
            at, is_key = at[: max(at.rfind("."), at.rfind("["), 0)], True
        where = self.document.place(known[at], key=is_key)
        said = f"{problems.visible(path)}: {message}" if path else message
        problem = problems.at(self.document.file, self.document.lines, where, (), said)
        return problems.DocumentError([problem], hint)


def convert(path: str | os.PathLike[str]) -> Conversion:
    """Return the conversion of a file with a TFJob.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file has no TFJob, or its TFJob cannot be expressed as a job file.
    """
    name = os.fspath(path)
    return convert_text(checks.read_bytes(name, _HINT), name)


def convert_text(text: str | bytes, file: str) -> Conversion:
    """Return the conversion of a text with a TFJob; the file's name is for messages.

    Raises:
        InvalidInput: the text has no TFJob, or its TFJob cannot be expressed as a job file.
    """
    source = ""
    try:
        source = documents.decode(text, file)
        return _converted(list(_objects(source, file)), file)
    except problems.DocumentError as error:
        if (tag := _template_tag(source, error)) is None:
            raise
        message = "this is a template, no manifest: what stands between braces is not filled in"
        lines = documents.split_lines(source)
        raise problems.DocumentError([problems.at(file, lines, tag, (), message)], _RENDER_FIRST) from error


def _converted(manifests: Sequence[_Object], file: str) -> Conversion:
    tfjob = _the_tfjob(manifests, file)
    config_map = next(
        (manifest for manifest in manifests if manifest.kind == "ConfigMap" and manifest.name == tfjob.name),
        None,
    )
    faults = [
        fault
        for manifest in (tfjob, config_map)
        if manifest is not None
        for fault in manifest.document.faults
    ]
    if faults:
        raise problems.DocumentError(dict.fromkeys(faults))
    data = config_map.data.get("data") if config_map is not None else None
    reading = tfjob_readings.TFJobReader(copy.deepcopy(tfjob.data), data if isinstance(data, dict) else {})
    try:
        tfjob_shapes.check(tfjob.data)
        document = reading.document()
    except Unreadable as error:
        raise tfjob.refusal(error.path, error.message, error.hint or None, is_key=error.is_key) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        damage = "the config map of its agents is not as Paceline renders it" if data else "it is damaged"
        raise tfjob.refusal("", f"this TFJob cannot be read: {damage}") from error
    try:
        job = files.parse_job(json.dumps(document, ensure_ascii=False), file=file)
    except problems.DocumentError as error:
        first = error.problems[0]
        raise tfjob.refusal(reading.source_of(first.path), first.message, None) from error
    spec = reading.placed(job.spec)
    sources = (tfjob, config_map) if reading.is_ours else (tfjob,)
    others = [
        manifest
        for manifest in manifests
        if manifest not in sources and not (reading.is_ours and _is_own(manifest, tfjob))
    ]
    return Conversion(text=dumping.dump_job(spec), lost=(*reading.lost(), *map(_passed_over, others)))


def _the_tfjob(found: Sequence[_Object], file: str) -> _Object:
    """Return the only TFJob of a file, which has to be of the supported version."""
    tfjobs_found = [each for each in found if each.kind == "TFJob"]
    if not tfjobs_found:
        raise _without_tfjob(found, file)
    if len(tfjobs_found) > 1:
        message = f"there are {len(tfjobs_found)} TFJobs in the file; a job file holds one job"
        raise tfjobs_found[1].refusal("kind", message, "convert each in a file of its own")
    (tfjob,) = tfjobs_found
    version, spec = tfjob.data.get("apiVersion"), tfjob.data.get("spec")
    odd = next((key for key in _BEFORE_V1 if isinstance(spec, dict) and key in spec), None)
    if version in _OLD or odd is not None:
        old = version if version in _OLD else "kubeflow.org/v1alpha1"
        where = "apiVersion" if version in _OLD else f"spec.{odd}"
        message = f"this is the form of {old}, from before Kubeflow 1.0; no operator of today takes it"
        todo = "; ".join(part for part in (_OLD[str(old)], _MOVED) if part)
        raise tfjob.refusal(where, message, f"write apiVersion: kubeflow.org/v1; {todo}")
    if version is None:
        raise tfjob.refusal("", "apiVersion is missing")
    if version != tfjobs.API_VERSION:
        message = f"{problems.shown(str(version))} is another API group or version than {tfjobs.API_VERSION}"
        raise tfjob.refusal("apiVersion", message)
    metadata = tfjob.data.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name") and "generateName" in metadata:
        message = "each TFJob that is created of it gets a name of its own; a job file has one name"
        raise tfjob.refusal("metadata.generateName", message, "write metadata.name in its place", is_key=True)
    return tfjob


def _without_tfjob(found: Sequence[_Object], file: str) -> InvalidInput:
    named = [each for each in found if each.kind]
    if not found:
        return InvalidInput(f"{problems.visible(file)}: there is no TFJob in it", _HINT)
    if not named:
        return found[0].refusal("", "there is no TFJob in the file: kind is missing")
    if named[0].kind == job_specs.KIND and named[0].data.get("apiVersion") == job_specs.API_VERSION:
        return named[0].refusal("kind", "this is a job file already; there is nothing to convert", None)
    kinds = dict.fromkeys(problems.visible(each.kind[:60]) for each in named)
    return named[0].refusal("kind", f"there is no TFJob in the file, only {', '.join([*kinds][:5])}")


def _objects(text: str, file: str) -> Iterator[_Object]:
    """Yield the objects of all documents, including the items of lists.

    Raises:
        DocumentError: a document is not YAML, or there are too many documents.
    """
    text = streams.without_directives(text)
    lines = documents.split_lines(text)
    for count, (start, end, line) in enumerate(streams.cuts(text)):
        if count == streams.MAX_DOCUMENTS:
            message = f"there are more than {streams.MAX_DOCUMENTS} documents in the file"
            raise problems.failure(file, lines, (line, 1), message)
        document = documents.read(text[start:end], file, first_line=line, lines=lines)
        data = _plain(document.data)
        if not isinstance(data, dict):
            continue
        items = data.get("items") if str(data.get("kind")).endswith("List") else None
        if isinstance(items, list):
            for index, item in enumerate(items):
                if isinstance(item, dict):
                    yield _Object(item, document, ("items", index))
        else:
            yield _Object(data, document, ())


def _plain(value: Any) -> Any:
    """Return a value as Kubernetes' reader (sigs.k8s.io/yaml) sees it, without fields that have no value."""
    if isinstance(value, dict):
        made = {key: _plain(each) for key, each in value.items()}
        return {key: each for key, each in made.items() if each is not None}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _leaf(value) if isinstance(value, Scalar) else None


def _leaf(scalar: Scalar) -> Any:
    """Return the value of a leaf; numbers in base 60 are text, as they are in Go."""
    text, number = scalar.text, scalar.text.replace("_", "")
    try:
        match scalar.kind:
            case ScalarKind.NULL:
                return None
            case ScalarKind.BOOLEAN:
                return text.lower() in ("true", "yes", "on")
            case ScalarKind.INTEGER:
                octal = _OCTAL.fullmatch(number)
                return int(octal[1] + octal[2], 8) if octal else int(number, 0)
            case ScalarKind.FLOAT:
                return found if math.isfinite(found := float(number)) else text
    except ValueError:
        return text
    return text


def _written(path: Sequence[str | int]) -> str:
    """Return a path in the format of the notes, such as ``spec.containers[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _template_tag(source: str, error: problems.DocumentError) -> tuple[int, int] | None:
    """Return line and column of the template tag that may be the reason why a file was rejected, or None."""
    failed = {problem.position.line for problem in error.problems}
    for number, line in enumerate(documents.split_lines(source), start=1):
        tag = _TAG.search(line)
        if tag and (number in failed or not any(mark in line[: tag.start()] for mark in "'\"#")):
            return number, tag.start() + 1
    return None


def _is_own(each: _Object, tfjob: _Object) -> bool:
    """Return whether Paceline renders this object together with its own TFJobs."""
    return each.kind == "NetworkPolicy" and each.name == tfjob.name


def _passed_over(each: _Object) -> str:
    return f"{each.kind} {each.name}: only the TFJob is read"
