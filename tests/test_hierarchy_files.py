"""Hierarchy files as spreadsheets and other tools write them: read, or told what they look like and what to do."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

pytestmark = pytest.mark.surface

LINES = [["Köln", "NRW", "*"], ["Bonn", "NRW", "*"], ["Mainz, am Rhein", "RLP", "*"]]


def write(file: Path, lines: list[list[str]], separator: str, encoding: str = "utf-8", end: str = "\n") -> Path:
    file.write_bytes((end.join(separator.join(line) for line in lines) + end).encode(encoding))
    return file


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_levels_between_semicolons_tabs_and_pipes_are_read(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, separator: str, encoding: str, end: str
) -> None:
    file = write(tmp_path / "towns.csv", LINES, separator, encoding, end)
    [row] = connection.execute(f"CALL kanon.create_hierarchy('town', levels => '{file}')").fetchall()
    assert row == ("town", "levels", 3, 6, 2)
    assert connection.execute("SELECT kanon.generalize('town', 'Köln', 1)").fetchall() == [("NRW",)]
    pairs = [["Köln", "NRW"], ["Bonn", "NRW"], ["NRW", "*"]]
    file = write(tmp_path / "edges.csv", pairs, separator, encoding, end)
    [row] = connection.execute(f"CALL kanon.create_hierarchy('edge', edges => '{file}')").fetchall()
    assert row == ("edge", "edges", 2, 4, 2)


CASES = [
    ("levels", [["town", "state", "root"], *LINES], ";", "utf-8", "line 1 of '{file}' looks like a header (town, state, root): no other line has a label of it; leave it out"),
    ("levels", [["town", "state"], *LINES], "\t", "utf-8", "looks like a header (town, state)"),
    ("edges", [["child", "parent"], ["a", "*"], ["b", "*"]], ",", "utf-8", "looks like a header (child, parent)"),
    ("levels", [["Köln: NRW: *"], ["Bonn: NRW: *"]], ";", "utf-8", "no line of '{file}' has a ; or tab or | or ,; write one of these"),
    ("levels", LINES, ";", "latin-1", "'{file}' is no UTF-8 text and looks like latin-1: save it as UTF-8, or write a query"),
    ("levels", LINES, ";", "utf-16", "'{file}' is no UTF-8 text and looks like utf-16"),
    ("levels", [["a", "b", "*"], ["c", "b", "*"]], ";", "utf-16-le", "looks like utf-16"),
    ("levels", [["a", "b", "*"], ["c", "b", "*"]], ";", "utf-16-be", "looks like utf-16"),
    ("levels", LINES, ";", "utf-16-be", "looks like utf-16"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "lines", "separator", "encoding", "words"), CASES)
def test_other_files_are_told_what_they_look_like(
    connection: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    argument: str,
    lines: list[list[str]],
    separator: str,
    encoding: str,
    words: str,
) -> None:
    file = write(tmp_path / "file.csv", lines, separator, encoding)
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(f"CALL kanon.create_hierarchy('town', {argument} => '{file}')")
    assert words.format(file=file) in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_the_query_that_is_proposed_for_another_encoding_works(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, encoding: str
) -> None:
    file = write(tmp_path / "towns.csv", LINES, ";", encoding)
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(f"CALL kanon.create_hierarchy('town', levels => '{file}')")
    query = str(raised.value).split("says so, as ")[1].replace("'", "''")
    connection.execute(f"CALL kanon.create_hierarchy('town', levels => '{query}')")
    assert connection.execute("SELECT kanon.generalize('town', 'Köln', 1)").fetchall() == [("NRW",)]


def test_long_paths_are_told_in_short(connection: duckdb.DuckDBPyConnection) -> None:
    for edges, words in [
        ("SELECT i, (i + 1) % 3000 FROM range(3000) AS r(i)", "0 → 1 → 2 → 3 → 4 → 5 → … (3001 labels in all) → 0 is a cycle"),
        ("SELECT i, i + 1 FROM range(2000) AS r(i) UNION ALL SELECT 7, 9", "'7' has two parents (7 → 8 → 9 → 10 → 11 → 12 → … (1000 labels in all)"),
    ]:  # fmt: skip
        with pytest.raises(duckdb.Error) as raised:
            connection.execute(f"CALL kanon.create_hierarchy('long', edges => '{edges}')")
        assert words in str(raised.value)
        assert len(str(raised.value)) < 400
