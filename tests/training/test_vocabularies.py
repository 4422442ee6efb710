import pytest

from paceline.training import errors, features, vocabularies


def test_words_are_lines(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("rot\r\n blau \ngrün".encode())
    assert vocabularies.read(str(path)) == ("rot", "blau", "grün")
    assert vocabularies.read(f"file://{path}") == ("rot", "blau", "grün")
    assert features.Vocabulary("colour", vocabularies.read(str(path))).rows == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\n a\n", r"words\.txt:3: the word 'a' stands in line 1 already"),
        (b"a\n\nb\n", r"words\.txt:2: this line is empty"),
        (b"a\n\xff\n", r"words\.txt:2: this line is not UTF-8"),
        (b"", r"words\.txt: there is no word in this file"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(errors.InputError, match=message):
        vocabularies.read(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(errors.InputError, match=r"none\.txt: there is no such file"):
        vocabularies.read(str(tmp_path / "none.txt"))
