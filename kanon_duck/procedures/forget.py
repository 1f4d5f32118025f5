"""CALL kanon.forget: erases old releases."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.views import find_view, record_first_release
from kanon_duck.errors import KanonError
from kanon_duck.release.history import forget_before
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """Erase the rows that only releases before some release have; their rows of ``kanon.releases`` stay.

    What is erased can no longer be queried, but its bytes stay in the database file until somebody rewrites
    it: the answer says so, and how.
    """
    view = find_view(call)
    before = read.integer(call.arguments, "before_release", None, 1)
    if before > view.release:
        raise KanonError(
            f"before_release is {before}, but {view.name} is at release {view.release}, which always stays: "
            f"name at most {view.release}"
        )
    rows = forget_before(call.database, view, before)
    first = max(before, view.first_release)
    record_first_release(call.database, view, first)
    file = call.database.value("SELECT path FROM duckdb_databases() WHERE database_name = ?", [call.catalog])
    return [
        {
            "view_name": view.name,
            "first_release": first,
            "forgotten_releases": first - view.first_release,
            "forgotten_rows": rows,
            "file": file,
            "note": _note(call.catalog, file),
        }
    ]


def _note(catalog: str, file: str | None) -> str:
    """What is still there, and how to be rid of it."""
    if file is None:
        return "the database is in memory: nothing is left"
    name = exp.to_identifier(catalog, quoted=True).sql(dialect="duckdb")
    return (
        "the rows can no longer be queried, but their bytes stay in the file, and in its backups and write-ahead log, "
        "until it is written anew: ATTACH 'new.duckdb' AS rewritten; "
        f"COPY FROM DATABASE {name} TO rewritten; then put the new file in the place of the old and erase that"
    )
