"""Whatever is done to a job file: it is read, or refused with places; never anything else."""

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES, examples

from paceline import specs

FUZZ = settings(max_examples=examples(150), suppress_health_check=SHARED_FIXTURES)
PLACE = re.compile(r"^job\.yaml:\d+:\d+: ")

Mutation = Callable[[random.Random, list[str]], str]


def _key_lines(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if re.match(r" *\w+:", line)]


def rename_a_key(chance: random.Random, lines: list[str]) -> str:
    index = chance.choice(_key_lines(lines))
    lines[index] = re.sub(r"(\w+):", lambda m: f"{m[1]}x:", lines[index], count=1)
    return "\n".join(lines)


def repeat_a_key(chance: random.Random, lines: list[str]) -> str:
    index = chance.choice([i for i in _key_lines(lines) if not lines[i].endswith(":")])
    lines.insert(index, lines[index])
    return "\n".join(lines)


def drop_what_is_required(chance: random.Random, lines: list[str]) -> str:
    word = chance.choice(
        ["apiVersion:", "kind:", "  name:", "mount_path: /data, ", "name: host-a, ", "rows: 1000000, "]
    )
    text = "\n".join(lines)
    return (
        text.replace(f"\n{word}", "\n#", 1)
        if word.endswith(":") and word[0] != "a"
        else text.replace(word, "", 1)
    )


def add_an_unknown_key(chance: random.Random, lines: list[str]) -> str:
    index = chance.choice(_key_lines(lines))
    indent = len(lines[index]) - len(lines[index].lstrip())
    lines.insert(
        index, f"{' ' * indent}{chance.choice(['foo', 'Spec', 'x-y', 'naem'])}: {chance.randint(0, 9)}"
    )
    return "\n".join(lines)


def spoil_a_number(chance: random.Random, lines: list[str]) -> str:
    fields = [
        "replicas",
        "cpu",
        "memory",
        "backoff",
        "limit",
        "batch_size",
        "every_seconds",
        "keep",
        "seed",
        "rows",
    ]
    field = chance.choice(fields)
    value = chance.choice(
        ["x", "-1", "1 0", "--", "1GiB!", "[1]", "{a: 1}", "true", "1e999", "99999999999999999999", "0x1"]
    )
    text, count = re.subn(rf"\b{field}: [^,}}\n]+", f"{field}: {value}", "\n".join(lines), count=1)
    assert count
    return text


def wrong_type(chance: random.Random, lines: list[str]) -> str:
    field = chance.choice(
        ["metadata", "spec", "roles", "worker", "placement", "hosts", "training", "volumes"]
    )
    index = next(i for i, line in enumerate(lines) if line.strip().startswith(f"{field}:"))
    indent = len(lines[index]) - len(lines[index].lstrip())
    end = index + 1
    while end < len(lines) and (
        len(lines[end]) - len(lines[end].lstrip()) > indent or lines[end].lstrip().startswith("- ")
    ):
        end += 1
    value = chance.choice(["text", "1", "true", "[[]]", "[1, 2]", "-3.5"])
    lines[index:end] = [f"{' ' * indent}{field}: {value}"]
    return "\n".join(lines)


def break_the_syntax(chance: random.Random, lines: list[str]) -> str:
    index = chance.choice(_key_lines(lines))
    junk = chance.choice(
        ["\t", "  ]", "}", "'", '"', "@", "`", "%", "&", "*missing", "!x", "key: : x", ": - a: b"]
    )
    lines.insert(index, f"{junk} {lines[index].strip()}" if junk == "\t" else junk)
    return "\n".join(lines)


def cut_inside_brackets(chance: random.Random, lines: list[str]) -> str:
    text = "\n".join(lines)
    place = chance.choice([match.start() for match in re.finditer(r"[\[{]", text)])
    return text[: place + 1 + chance.randint(0, 3)]


def bad_words(chance: random.Random, lines: list[str]) -> str:
    text = "\n".join(lines)
    old, new = chance.choice(
        [
            ("when: always", "when: sometimes"), ("strategy: colocate", "strategy: colocated!"),
            ("success: all-workers", "success: all_worker"), ("clean_up: succeeded", "clean_up: everything"),
            ("threads: 3", "threads: many"), ("format: csv", "format: json"), ("name: clicks", "name: a/b"),
            ("name: host-b", "name: host-a"), ("read_only: yes", "read_only: 1"), ("1h30m", "soon"),
            ("effect: NoExecute", "effect: NoRun"), ("name: adagrad", "name: sgd"), ("1Gbit", "quick"),
            ("mount_path: /models", "mount_path: x"), ("/data,", "/../data,"), ("replicas: 4", "replicas: x"),
        ]
    )  # fmt: skip
    assert old in text
    return text.replace(old, new, 1)


def put_control_characters(chance: random.Random, lines: list[str]) -> str:
    text = "\n".join(lines)
    place = chance.randrange(len(text))
    return text[:place] + chance.choice("\0\x01\x08\x1b\x7f\ud800\ufffe") + text[place:]


MUTATIONS: list[Mutation] = [
    rename_a_key, repeat_a_key, drop_what_is_required, add_an_unknown_key, spoil_a_number, wrong_type,
    break_the_syntax, cut_inside_brackets, bad_words, put_control_characters,
]  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@pytest.mark.parametrize("seed", range(30))
def test_a_mutated_file_is_refused_with_a_place(good: str, mutation: Mutation, seed: int) -> None:
    text = mutation(random.Random(seed), good.splitlines())
    assert text != good
    with pytest.raises(specs.DocumentError) as caught:
        specs.parse_job(text, "job.yaml")
    for problem in caught.value.problems:
        assert PLACE.match(str(problem))
        assert problem.position.line <= len(re.split("\r\n|[\n\r\x85\u2028\u2029]", text))
    assert all(c.isprintable() or c == "\n" for c in caught.value.message)


def _read(text: str | bytes) -> specs.JobFile | specs.DocumentError:
    try:
        return specs.parse_job(text, "job.yaml")
    except specs.DocumentError as error:
        return error


def _survives(text: str | bytes) -> None:
    result = _read(text)
    if isinstance(result, specs.DocumentError):
        assert result.problems
        assert all(PLACE.match(str(problem)) for problem in result.problems)
    else:
        assert specs.parse_job(specs.dump_job(result.spec)).spec == result.spec


@FUZZ
@given(st.data())
def test_files_with_pieces_cut_out_or_put_in(good: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 40)))
    piece = data.draw(
        st.sampled_from(["", " ", "\n", ": ", "- ", "[", "{", "}", "&a ", "*a", "<<: ", "|\n", "#", "0", "~"])
    )
    _survives(good[:start] + piece + good[end:])


@FUZZ
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    _survives(text)


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    _survives(data)


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@FUZZ
@given(
    st.fixed_dictionaries(
        {"apiVersion": st.just("paceline.dev/v1alpha1"), "kind": st.just("TrainingJob")},
        optional={
            "metadata": _TREES,
            "spec": st.fixed_dictionaries(
                {"roles": st.dictionaries(st.sampled_from(["ps", "worker", "chief"]), _TREES, max_size=3)},
                optional={
                    name: _TREES
                    for name in (
                        "command",
                        "hosts",
                        "placement",
                        "training",
                        "environment",
                        "volumes",
                        "secrets",
                    )
                },
            ),
        },
    )
)
def test_right_keys_with_any_values(tree: object) -> None:
    import json

    _survives(json.dumps(tree))
