"""The tables of a model's embeddings."""

import pytest

from paceline.training import declarations, errors, features

MOST = 2**31 - 1


def embeddings(*rows):
    columns = tuple(features.Hashed(f"f{number}", each) for number, each in enumerate(rows))
    return [declarations.Embedding("deep", columns, 4, None, "deep")]


def test_rows_of_fused_tables_have_ids_of_32_bits():
    (table,) = declarations.tables(embeddings(MOST - 10, 10), fused=True)
    assert table.rows == MOST
    with pytest.raises(errors.SettingsError, match=r"f0, f1 .*2,147,483,648 rows.*fused_tables: false"):
        declarations.tables(embeddings(MOST - 10, 11), fused=True)
    assert len(declarations.tables(embeddings(MOST - 10, 11), fused=False)) == 2
