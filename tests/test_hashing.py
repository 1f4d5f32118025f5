"""Hashes by which people and values are recognized: different texts have different ones."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import kanon_duck
from kanon_duck.intake.hashing import hash_of

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def texts_that_differ_at(positions: list[int], length: int) -> str:
    """A query for all texts of x that have other letters at some positions."""
    at = {position: len(LETTERS) ** place for place, position in enumerate(positions)}
    letter = "substr('{}', 1 + CAST((i // {}) % {} AS INTEGER), 1)"
    parts = [letter.format(LETTERS, at[each], len(LETTERS)) if each in at else "'x'" for each in range(length)]
    return f"SELECT {' || '.join(parts)} AS text FROM range({len(LETTERS) ** len(positions)}) AS r(i)"


@pytest.mark.surface
@pytest.mark.parametrize("kind", ["VARCHAR", "BLOB", "VARCHAR[]"])
@pytest.mark.parametrize("positions", [[7, 15], [7, 15, 23], [6, 7, 14], [3, 11, 19], [3, 7, 11], [23, 31, 39]])
@pytest.mark.parametrize("length", [40, 41, 44, 47])
def test_texts_that_differ_have_different_hashes(kind: str, positions: list[int], length: int) -> None:
    cast = "[text]" if kind.endswith("]") else f"CAST(text AS {kind})"
    query = f"SELECT count(*), count(DISTINCT {hash_of([('value', kind)])}) FROM (SELECT {cast} AS value FROM ({{}}))"
    with duckdb.connect() as connection:
        [(texts, hashes)] = connection.execute(query.format(texts_that_differ_at(positions, length))).fetchall()
    assert hashes == texts


@pytest.mark.surface
def test_people_whose_keys_differ_in_the_last_bytes_of_words_are_different_people(tmp_path: Path) -> None:
    with kanon_duck.connect(tmp_path / "people.duckdb") as connection:
        connection.execute(f"CREATE TABLE keys AS {texts_that_differ_at([7, 15], 16)}")
        connection.execute(
            "CREATE TABLE people AS SELECT text AS id, CAST(hash(text) % 50 AS INTEGER) AS age, "
            "['Flu', 'Gout', 'Asthma'][1 + CAST(hash(text, 1) % 3 AS INTEGER)] AS illness FROM keys WHERE hash(text, 9) % 2 = 0"
        )
        connection.execute(
            "CALL kanon.create_masked_view('v', source => 'people', key => 'id', quasi_identifiers => ['age'], k => 3, "
            "sensitive => ['illness'], l => 2, on_delete => 'counterfeit')"
        )
        for number in range(3):
            connection.execute(f"DELETE FROM people WHERE hash(id, {number}) % 4 = 0")
            connection.execute(
                "INSERT INTO people SELECT text, 30, 'Flu' FROM keys WHERE text NOT IN (SELECT id FROM people) "
                f"AND hash(text, {number}) % 3 = 0"
            )
            connection.execute("CALL kanon.refresh('v')")
            [(twice,)] = connection.execute(
                "SELECT count(*) - count(DISTINCT row) FROM kanon_private.members_1"
            ).fetchall()
            assert twice == 0
