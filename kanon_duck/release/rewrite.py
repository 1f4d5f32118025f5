"""Writes a whole table anew under its old name, so that nothing of what it held before is left in it.

DuckDB never narrows the statistics of a table whose rows are deleted, and adds new rows behind the others.
"""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.runtime.call import Call


def replace_table(call: Call, table: exp.Table, rows: exp.Query) -> list[str]:
    """Let a table, which may not exist yet, hold the rows of a query, which may read it, and nothing else.

    Where views depend on it (``enable_view_dependencies``) DuckDB does not let it be replaced: then all of its rows
    are deleted before the new ones are inserted. Returns a warning that says so.
    """
    database = call.database
    if not _is_depended_on(call, table):
        database.execute(exp.Create(this=table, kind="TABLE", replace=True, expression=rows))
        return []
    new = "temp.kanon_new"
    database.execute(f"CREATE OR REPLACE TEMPORARY TABLE {new} AS {rows.sql(dialect='duckdb')}")
    database.execute(exp.delete(table))
    database.execute(exp.insert(exp.select("*").from_(new), table, copy=False))
    database.execute(f"DROP TABLE {new}")
    return [
        f"views depend on {table.sql(dialect='duckdb')} (enable_view_dependencies), so that it could not be replaced: "
        "its statistics may still tell of earlier releases"
    ]


def _is_depended_on(call: Call, table: exp.Table) -> bool:
    """Whether DuckDB keeps a table because views depend on it; it tells that of the current database only."""
    with call.in_callers_schema():
        found = call.database.rows(
            "SELECT table_oid FROM system.main.duckdb_dependencies() JOIN system.main.duckdb_tables() "
            "ON table_oid = objid WHERE database_name = ? AND schema_name = ? AND table_name = ? AND deptype = 'n'",
            [call.catalog, table.db, table.name],
        )
    return bool(found)
