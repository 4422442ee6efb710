"""Whatever a text does to its reader, who asked gets an answer, and so does the next one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import odd_readers

from paceline import specs
from paceline.errors import InvalidInput
from paceline.services.bounded_readers import BoundedReader
from paceline.services.operators import reconcilers
from paceline.specs import DocumentError
from paceline.specs.job_file import custom_resources

Reader = BoundedReader[str, str]


@pytest.fixture
def reader() -> Iterator[Reader]:
    made: Reader = BoundedReader(odd_readers.read, seconds=3600.0)
    yield made
    made.close()


@pytest.mark.parametrize("text", ["for ever", "within one call"])
def test_a_text_that_is_never_read_is_given_up(text: str) -> None:
    impatient: Reader = BoundedReader(odd_readers.read, seconds=0.5, most_seconds=2.0)
    with pytest.raises(InvalidInput, match=r"cannot be read in 0\.5 s"):
        impatient.read(text)
    assert impatient._process is None
    impatient.close()


@pytest.mark.parametrize("text", ["too large", "too deep"])
def test_a_text_that_takes_too_much_is_given_up(reader: Reader, text: str) -> None:
    with pytest.raises(InvalidInput, match="more than 512 MiB"):
        reader.read(text)
    assert reader.read("next") == "NEXT"


@pytest.mark.parametrize(("text", "code"), [("killed", "-9"), ("a fault of ours", "1")])
def test_a_process_that_ends_for_another_reason_is_said_to_have_ended(
    reader: Reader, text: str, code: str
) -> None:
    with pytest.raises(InvalidInput, match=f"has ended with exit code {code}"):
        reader.read(text)
    assert reader.read("next") == "NEXT"


def test_what_is_wrong_with_a_text_is_said_by_the_same_process(reader: Reader) -> None:
    assert reader.read("first") == "FIRST"
    process = reader._process
    with pytest.raises(InvalidInput, match="it is wrong") as caught:
        reader.read("wrong")
    assert caught.value.hint == "mend it"
    assert (reader.read("next"), reader._process) == ("NEXT", process)


def test_a_process_that_was_killed_meanwhile_is_replaced(reader: Reader) -> None:
    assert reader.read("first") == "FIRST"
    process = reader._process
    assert process is not None
    process.kill()
    process.join()
    assert reader.read("next") == "NEXT"


def test_several_threads_ask_one_after_the_other(reader: Reader) -> None:
    texts = [f"text {number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(reader.read, texts)) == [text.upper() for text in texts]


def test_jobs_and_what_is_wrong_with_them_go_from_process_to_process() -> None:
    spec = specs.parse_job(specs.template()).spec
    resource = custom_resources.resource(spec, "default")
    with_image = {**resource, "spec": {**resource["spec"], "image": "localhost/work:1"}}
    reader = BoundedReader(reconcilers.wanted, seconds=3600.0)
    try:
        assert reader.read(with_image) == reconcilers.wanted(with_image)
        assert "no image" in str(reader.read(resource))
    finally:
        reader.close()
    with pytest.raises(DocumentError) as caught:
        specs.parse_job("spec: {}")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.problems, again.message) == (caught.value.problems, caught.value.message)
