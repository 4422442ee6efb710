"""The types of single values in a job file: the accepted texts, the resulting values, the JSON Schema.

Every leaf arrives as a `documents.Scalar`, so each type sees the text as written. A type is a function from
this leaf to a value, wrapped for pydantic together with the JSON Schema of the leaf.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import urllib.parse
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from paceline.model import quantities
from paceline.model.jobs import job_specs, placements
from paceline.specs.yaml_text import problems
from paceline.specs.yaml_text.documents import Scalar, ScalarKind

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}", re.ASCII)
#: ``git@host:path``. git would read a leading '-' as an option, and the part before '::' as a helper program.
_SSH = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![:/]{2})[^\s:-]\S*", re.ASCII)
#: ``git check-ref-format`` forbids more. git would read a leading '-' as an option and '+' as a forced
#: update.
_REVISION = re.compile(r"(?!.*(\.\.|@\{|//))[^\s\x00-\x20\x7f~^:?*\[\\+/-][^\s\x00-\x20\x7f~^:?*\[\\]*")
_REPLICA = re.compile(r"(ps|worker|chief|evaluator)-(0|[1-9][0-9]{0,4})", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_INTEGER = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][-+]?\d{1,3})?", re.ASCII)
_TRUE = ("true", "yes", "on")
#: Linux passes no argument and no ``NAME=value`` of 128 KiB or more to a program (``MAX_ARG_STRLEN``,
#: execve(2)).
_MAX_TEXT_BYTES = (128 << 10) - 1024

GIT_SCHEMES = ("https", "http", "ssh", "git", "file")
ARCHIVE_SCHEMES = ("https", "http", "s3", "hdfs", "webhdfs", "file")

NUMBER = r"[0-9]*\.?[0-9]+"
_QUANTITY_PATTERN = rf"^\+?{NUMBER}([eE][+-]?[0-9]{{1,3}}|[KMGTPE]i|[numkMGTPE])?$"
_DURATION_PATTERN = rf"^({NUMBER}|([0-9]+d)?([0-9]+h)?([0-9]+m)?({NUMBER}s)?)$"
_BANDWIDTH_PATTERN = rf"^{NUMBER} ?[kMGT]?(bit|bps|B/s|Bps)?$"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """The check of a single value for pydantic, and the JSON Schema of the value."""

    check: Callable[[object], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)


def wrong(message: str) -> PydanticCustomError:
    """Return the error with which a type rejects a value."""
    return PydanticCustomError("job_file", "{message}", {"message": message})


def leaf(value: object, wanted: str) -> Scalar:
    """Return a value as a leaf; a mapping or a list is an error."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, str):  # a key
        return Scalar(value)
    what = "a mapping" if isinstance(value, dict) else "a list"
    raise wrong(f"this is {what}; {wanted} is wanted")


def text(value: object, wanted: str = "text") -> str:
    """Return text; a number is accepted as written, but a YAML boolean is an error."""
    scalar = leaf(value, wanted)
    if scalar.kind is ScalarKind.NULL:
        raise wrong(f"there is no value; {wanted} is wanted")
    if scalar.kind is ScalarKind.BOOLEAN:
        raise wrong(
            f"{problems.shown(scalar.text)} is a boolean to YAML; {wanted} is wanted: "
            f"write {problems.quoted(scalar.text)}"
        )
    return scalar.text


def as_written(value: object) -> str:
    """Return the value of an environment variable: a text, number or boolean as written."""
    scalar = leaf(value, "text, a number or a boolean")
    if scalar.kind is ScalarKind.NULL:
        raise wrong('there is no value; write "" for an empty one')
    return scalar.text


def _passable(check: Callable[[object], str]) -> Callable[[object], str]:
    """Return a check that also rejects text that is too long to be passed to a program."""

    def checked(value: object) -> str:
        result = check(value)
        size = len(result.encode())
        if size > _MAX_TEXT_BYTES:
            raise wrong(
                f"the text has {size} bytes; Linux hands at most {_MAX_TEXT_BYTES} to a program: "
                "put it into a file"
            )
        return result

    return checked


def _single_line(wanted: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        result = text(value, wanted)
        if not result.isprintable() or not result or result != result.strip():
            raise wrong(f"{problems.shown(result)} is not {wanted} (printable, not empty)")
        return result

    return check


def _texts(value: object) -> str | list[str]:
    check = _single_line("text")
    if not isinstance(value, list):
        return check(value)
    if not value:
        raise wrong("the list is empty; leave the key out")
    return [check(item) for item in value]


def _matching(pattern: re.Pattern[str], limit: int, wanted: str, allowed: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        result = text(value, wanted)
        if len(result) > limit or not pattern.fullmatch(result):
            long = f"has {len(result)} characters and " if len(result) > limit else ""
            raise wrong(f"{problems.shown(result)} {long}is not {wanted}: {allowed}")
        return result

    return check


def _label_key(value: object) -> str:
    result = text(value)
    prefix, slash, name = result.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix))
    if not good_prefix or not name or not _LABEL_VALUE.fullmatch(name):
        raise wrong(
            f"{problems.shown(result)} is not a label key: letters, digits, '-', '_' and '.', at most 63, "
            "after an optional 'domain/'"
        )
    return result


def _absolute(value: object) -> str:
    result = _single_line("an absolute path")(value)
    if not result.startswith("/") or ".." in result.split("/") or len(result) > 4096:
        raise wrong(f"{problems.shown(result)} is not an absolute path without '..' (example: /data)")
    return result


def _inner(value: object) -> str:
    result = _single_line("a path")(value)
    if result.startswith("/") or ".." in result.split("/") or len(result) > 4096:
        raise wrong(f"{problems.shown(result)} is not a relative path without '..' (example: training)")
    return result


def _url(schemes: tuple[str, ...], example: str) -> Callable[[object], str]:
    """Return the check of a URL that has one of these schemes and no password in it.

    A user name is allowed, too, except in http and https.
    """
    wanted = f"a URL ({', '.join(schemes)}; example: {example})"

    def check(value: object) -> str:
        result = _single_line("a URL")(value)
        scheme = re.match(r"([a-z0-9+.-]+)://", result)
        if scheme is None or scheme[1] not in schemes or " " in result or len(result) > 4096:
            close = problems.did_you_mean(scheme[1], schemes) if scheme else ""
            raise wrong(f"{problems.shown(result)} is not {wanted}{close}")
        try:
            parts = urllib.parse.urlsplit(result)
        except ValueError as error:
            raise wrong(f"{problems.shown(result)} is not {wanted}") from error
        if parts.password is not None or (parts.username is not None and scheme[1] in ("http", "https")):
            raise wrong(
                "a job file is no place for a password; put it as PACELINE_CODE_PASSWORD into a Secret, and "
                "name that in spec.secrets"
            )
        host = parts.netloc.rpartition("@")[2]
        if host.startswith("-") or (not host and scheme[1] not in ("file", "hdfs")):
            raise wrong(f"{problems.shown(result)} names no server")
        return result

    return check


def _git_url(value: object) -> str:
    written = text(value, "a URL")
    if _SSH.fullmatch(written) and len(written) <= 4096:
        return written
    return _url(GIT_SCHEMES, "https://git.example.com/team/clicks.git")(value)


def _boolean(value: object) -> bool:
    scalar = leaf(value, "true or false")
    if scalar.kind is not ScalarKind.BOOLEAN:
        raise wrong(f"{problems.shown(scalar.text)} is not true or false")
    return scalar.text.lower() in _TRUE


def integer(low: int, high: int) -> Callable[[object], int]:
    """Return the check of a whole number within a range."""

    def check(value: object) -> int:
        scalar = leaf(value, "a whole number")
        if scalar.kind is ScalarKind.TEXT or not _INTEGER.fullmatch(scalar.text):
            raise wrong(f"{problems.shown(scalar.text)} is not a whole number from {low} to {high}")
        number = int(scalar.text)
        if not low <= number <= high:
            raise wrong(f"{number} is out of range: from {low} to {high}")
        return number

    return check


def number(low: float, high: float, *, above: bool = False) -> Callable[[object], float]:
    """Return the check of a number within a range; ``above`` excludes ``low`` itself."""
    allowed = f"{'above' if above else 'from'} {low:g} to {high:g}"

    def check(value: object) -> float:
        scalar = leaf(value, "a number")
        if not scalar.is_number or not _FLOAT.fullmatch(scalar.text):
            raise wrong(f"{problems.shown(scalar.text)} is not a number {allowed}")
        result = float(scalar.text)
        if not low <= result <= high or (above and result == low):
            raise wrong(f"{problems.shown(scalar.text)} is out of range: {allowed}")
        return result

    return check


def _quantity(parse: Callable[[str], Any], wanted: str) -> Callable[[object], Any]:
    def check(value: object) -> Any:
        written = text(value, wanted)
        if len(written) > 40:
            raise wrong(f"{problems.shown(written)} is not {wanted}")
        try:
            return parse(written)
        except ValueError as error:
            message = str(error)
            if " is not a " in message:
                message = f"{problems.shown(written)} is not {wanted}"
            raise wrong(problems.visible(message)) from error

    return check


def one_of(words: type[enum.StrEnum] | tuple[str, ...]) -> Callable[[object], Any]:
    """Return the check of a word from a closed list."""
    known = tuple(str(word) for word in words)

    def check(value: object) -> Any:
        scalar = leaf(value, "one of " + ", ".join(known))
        if scalar.text not in known:
            allowed = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
            close = problems.did_you_mean(scalar.text, known) if len(known) > 1 else ""
            raise wrong(f"{problems.shown(scalar.text)} is not {allowed}{close}")
        return words(scalar.text) if isinstance(words, type) else scalar.text

    return check


def auto_or_count(value: object) -> int:
    """Return a count of threads or calls; 0 stands for ``auto``."""
    scalar = leaf(value, "auto or a whole number")
    if scalar.text == "auto":
        return 0
    if scalar.kind is not ScalarKind.INTEGER or not _INTEGER.fullmatch(scalar.text):
        raise wrong(f"{problems.shown(scalar.text)} is not auto or a whole number from 1 to 4096")
    return integer(1, 4096)(scalar)


def _command(value: object) -> list[str]:
    if isinstance(value, Scalar) and value.kind is not ScalarKind.NULL:
        example = f"[sh, -c, {problems.quoted(value.text)}]"
        raise wrong(f"a command is a list of words, not one text; for a shell line write {example}")
    if not isinstance(value, list):
        raise wrong("a command is a list of words, such as [python, train.py]")
    if not value:
        raise wrong("the command has no words; leave the key out or write [python, train.py]")
    return value


def whole(low: int, high: int) -> Leaf:
    """Return the type of a whole number within a range."""
    return Leaf(integer(low, high), {"type": "integer", "minimum": low, "maximum": high})


def choice(words: type[enum.StrEnum] | tuple[str, ...]) -> Leaf:
    """Return the type of a word from a closed list."""
    return Leaf(one_of(words), {"enum": [str(word) for word in words]})


#: The version of the format of each file that users write.
ApiVersion = Annotated[Literal["paceline.dev/v1alpha1"], choice((job_specs.API_VERSION,))]


def _either(pattern: str, *examples: str | int | float) -> dict[str, Any]:
    """Return the JSON Schema of a value that may be written as a number or as text with a unit."""
    number_schema: dict[str, Any] = {"type": "number", "minimum": 0}
    text_schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    return {"anyOf": [number_schema, text_schema], "examples": list(examples)}


def _label(pattern: re.Pattern[str], limit: int, wanted: str, allowed: str) -> Leaf:
    check = _matching(pattern, limit, wanted, allowed)
    return Leaf(check, {"type": "string", "maxLength": limit, "pattern": f"^{pattern.pattern}$"})


def is_name(name: str) -> bool:
    """Return whether a job or a host may have this name."""
    return len(name) <= 52 and _LABEL.fullmatch(name) is not None


_RULE = "lower-case letters, digits and '-', letter or digit at both ends"
_STRING: dict[str, Any] = {"type": "string"}
_WORD: dict[str, Any] = {"type": ["string", "number"]}
_ANY: dict[str, Any] = {"type": ["string", "number", "boolean"]}
AUTO_OR_COUNT: dict[str, Any] = {
    "anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": 4096}]
}

#: The rule for names of jobs and hosts. Kubernetes allows 63 characters, and suffixes are added to the name.
NAME_RULE = f"{_RULE}, at most 52"

Name = Annotated[str, _label(_LABEL, 52, "a name", f"{NAME_RULE} (Kubernetes adds suffixes)")]
VolumeName = Annotated[str, _label(_LABEL, 63, "a name", f"{_RULE}, at most 63")]
ObjectName = Annotated[str, _label(_SUBDOMAIN, 253, "a Kubernetes name", f"{_RULE}, parts joined by '.'")]
VariableName = Annotated[
    str, _label(_VARIABLE, 256, "a variable's name", "letters, digits and '_', not starting with a digit")
]
ReplicaName = Annotated[
    str, _label(_REPLICA, 16, "a replica", "a role and an index, such as ps-0 or worker-3")
]
LabelKey = Annotated[str, Leaf(_label_key, _STRING)]
LabelValue = Annotated[
    str,
    Leaf(_matching(_LABEL_VALUE, 63, "a label's value", "letters, digits, '-', '_', '.', at most 63"), _WORD),
]
Image = Annotated[
    str, Leaf(_matching(_IMAGE, 512, "an image", "such as registry.example.com/clicks:1.4"), _STRING)
]
Text = Annotated[str, Leaf(_single_line("text"), _STRING)]
Texts = Annotated[
    str | list[str],
    Leaf(_texts, {"anyOf": [_STRING, {"type": "array", "minItems": 1, "items": _STRING}]}),
]
RelativePath = Annotated[str, Leaf(_single_line("a path"), _STRING)]
AbsolutePath = Annotated[str, Leaf(_absolute, {"type": "string", "pattern": "^/"})]
InnerPath = Annotated[str, Leaf(_inner, {"type": "string", "pattern": "^[^/]"})]
GitUrl = Annotated[str, Leaf(_git_url, _STRING)]
ArchiveUrl = Annotated[str, Leaf(_url(ARCHIVE_SCHEMES, "https://example.com/clicks-1.4.tgz"), _STRING)]
Revision = Annotated[
    str, Leaf(_matching(_REVISION, 256, "a revision", "a commit, a tag or a branch of git"), _WORD)
]
Sha256 = Annotated[
    str,
    Leaf(
        _matching(_SHA256, 64, "a SHA-256", "64 digits from 0-9 and a-f, as sha256sum prints them"),
        {"type": "string", "minLength": 64, "maxLength": 64},
    ),
]
Word = Annotated[str, Leaf(_passable(text), _WORD)]
EnvironmentValue = Annotated[str, Leaf(_passable(as_written), _ANY)]
Boolean = Annotated[bool, Leaf(_boolean, {"type": "boolean"})]
Threads = Annotated[int, Leaf(auto_or_count, AUTO_OR_COUNT)]
Command = Annotated[
    list[Word],
    BeforeValidator(_command),
    WithJsonSchema({"type": "array", "minItems": 1, "items": _WORD}),
]

_CORES_WANTED = "a number of cores (examples: 2, 500m, 1.5)"
_BYTES_WANTED = "an amount of memory (examples: 4Gi, 512Mi)"
_SECONDS_WANTED = "a duration (examples: 30, 90s, 5m, 1h30m, 7d)"
_BITS_WANTED = "a bandwidth (examples: 1Gbit, 100Mbit, 10MB/s)"

CpuCores = Annotated[
    float,
    Leaf(_quantity(quantities.parse_cpu_cores, _CORES_WANTED), _either(_QUANTITY_PATTERN, 2, "500m", 1.5)),
]
Bytes = Annotated[
    int, Leaf(_quantity(quantities.parse_bytes, _BYTES_WANTED), _either(_QUANTITY_PATTERN, "4Gi", "512Mi"))
]
Seconds = Annotated[
    float,
    Leaf(
        _quantity(quantities.parse_seconds, _SECONDS_WANTED),
        _either(_DURATION_PATTERN, 30, "90s", "5m", "1h30m", "7d"),
    ),
]
BitsPerSecond = Annotated[
    int,
    Leaf(
        _quantity(quantities.parse_bits_per_second, _BITS_WANTED),
        _either(_BANDWIDTH_PATTERN, "1Gbit", "100Mbit", "10MB/s"),
    ),
]
Framework = Annotated[job_specs.Framework, choice(job_specs.Framework)]
Instrumentation = Annotated[job_specs.Instrumentation, choice(job_specs.Instrumentation)]
CpuPolicy = Annotated[job_specs.CpuPolicy, choice(job_specs.CpuPolicy)]
Success = Annotated[job_specs.SuccessPolicy, choice(job_specs.SuccessPolicy)]
CleanUp = Annotated[job_specs.CleanUp, choice(job_specs.CleanUp)]
FitPolicy = Annotated[job_specs.FitPolicy, choice(job_specs.FitPolicy)]
SecurityProfile = Annotated[job_specs.SecurityProfile, choice(job_specs.SecurityProfile)]
RestartWhen = Annotated[job_specs.RestartWhen, choice(job_specs.RestartWhen)]
Strategy = Annotated[placements.PlacementStrategy, choice(placements.PlacementStrategy)]
