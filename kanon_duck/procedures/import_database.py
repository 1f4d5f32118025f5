"""CALL kanon.import_database: an exported database that has kanon_duck in it, into one that has kanon_duck in it."""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import OURS, Call, Row

IN_USE = """
    SELECT name FROM kanon_private.masked_views
    UNION ALL SELECT hierarchy FROM kanon_private.hierarchies LIMIT 1
"""


def run(call: Call) -> list[Row]:
    """Put the exported schemas of kanon_duck in the place of ours, which hold nothing yet, and import all else.

    Raises
    ------
    KanonError
        When there is something in ours, no exported kanon_duck in the folder, or a name is taken.
    """
    folder = read.text(call.arguments, "folder")
    exported = Path(folder) / "schema.sql"
    if not exported.is_file():
        raise KanonError(f"folder is {read.shown(folder)}, where no schema.sql is: name one that EXPORT DATABASE wrote")
    if "CREATE SCHEMA kanon_private;" not in exported.read_text(encoding="utf-8"):
        raise KanonError(f"folder is {read.shown(folder)}, which has no kanon_duck in it: IMPORT DATABASE imports it")
    used = call.database.value(IN_USE)
    if used is not None:
        raise KanonError(
            f"folder is {read.shown(folder)}, but this database has {used} already: import into one without masked "
            "views and hierarchies"
        )
    call.database.execute(exp.Use(this=exp.table_("main", db=call.catalog, quoted=True)))
    for schema in OURS:
        call.database.execute(f"DROP SCHEMA {schema} CASCADE")
    call.database.execute(f"IMPORT DATABASE {exp.Literal.string(folder).sql(dialect='duckdb')}")
    call.use_our_schemas()
    views, hierarchies = call.database.rows(
        "SELECT (SELECT count(*) FROM kanon.masked_views), (SELECT count(*) FROM kanon.hierarchies)"
    )[0]
    return [{"folder": folder, "masked_views": views, "hierarchies": hierarchies}]
