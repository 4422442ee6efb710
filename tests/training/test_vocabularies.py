import gzip

import pytest

from paceline.training import errors, features, vocabularies


def test_words_are_lines(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("rot\r\n blau \ngrün".encode())
    assert vocabularies.read(str(path)) == ("rot", "blau", "grün")
    assert vocabularies.read(f"file://{path}") == ("rot", "blau", "grün")
    assert features.Vocabulary("colour", vocabularies.read(str(path))).rows == 4


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfrot\nblau\n",
        b"rot\rblau",
        gzip.compress(b"rot\nblau\n"),
        gzip.compress(b"\xef\xbb\xbfrot\r\nblau"),
    ],
    ids=["mark", "old breaks", "gzip", "gzip, mark"],
)
def test_a_file_may_be_packed_and_may_have_a_mark(tmp_path, content):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    assert vocabularies.read(str(path)) == ("rot", "blau")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\n a\n", r"words\.txt:3: the word 'a' stands in line 1 already"),
        (b"a\n\nb\n", r"words\.txt:2: this line is empty"),
        (b"a\n\xff\n", r"words\.txt:2: this line is not UTF-8"),
        ("a\n".encode("utf-16"), r"words\.txt: this is UTF-16; write it as UTF-8"),
        (b"PK\x03\x04..", r"words\.txt: this is a ZIP archive, and no text; unpack it first"),
        (gzip.compress(b"a\n")[:-9], r"words\.txt: it is compressed by gzip, and damaged"),
        (b"", r"words\.txt: there is no word in this file"),
    ],
    ids=["twice", "empty line", "not UTF-8", "UTF-16", "ZIP", "damaged gzip", "no word"],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(errors.InputError, match=message):
        vocabularies.read(str(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(errors.InputError, match=r"none\.txt: there is no such file"):
        vocabularies.read(str(tmp_path / "none.txt"))
    with pytest.raises(errors.InputError, match="there is no such file, or it may not be read"):
        vocabularies.read(str(tmp_path))
    with pytest.raises(errors.InputError, match="Protocol not known: nowhere"):
        vocabularies.read("nowhere://words.txt")


def test_a_name_cannot_act_on_a_terminal(tmp_path):
    with pytest.raises(errors.InputError) as raised:
        vocabularies.read(str(tmp_path / "\x1b[2Jnone.txt"))
    assert str(raised.value).isprintable()
