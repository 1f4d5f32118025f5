"""Private and released tables follow a source whose columns have got wider types."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.columns import private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import changes_table, history_table, members_table, released_table, stays_table
from kanon_duck.catalog.views import MaskedView, record_types, stored_types
from kanon_duck.runtime.call import Call


def widen(call: Call, view: MaskedView, settings: Settings) -> None:
    """Give the columns that hold values of the source the types that it has now (see `first_other_type`).

    What the process remembers of the members is forgotten: an ENUM's values may have other numbers.
    """
    before = stored_types(call, view)
    changed = [name for name, kind in before.items() if settings.columns[name] != kind]
    if not changed:
        return
    roles = ("key", "sensitive", "kept")
    named = [name for role in roles for name in settings.roles()[role]]
    private = [members_table(view.number), stays_table(view.number), changes_table(view.number)]
    for name, column in zip(named, private_names(settings, *roles), strict=True):
        if name in changed:
            for table in private:
                _alter(call, exp.to_table(table), column, settings.columns[name])
            for released in (released_table(view.name), history_table(view.name)):
                _alter(call, released, name, settings.columns[name])
    record_types(call.database, view, settings)
    call.memory.take()


def _alter(call: Call, table: exp.Table, column: str, kind: str) -> None:
    """Change the type of a column, where the table is there and has it."""
    found = call.database.value(
        "SELECT count(*) FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? "
        "AND lower(table_name) = lower(?) AND lower(column_name) = lower(?)",
        [call.catalog, table.db, table.name, column],
    )
    if found:
        action = exp.AlterColumn(this=exp.column(column, quoted=True), dtype=exp.DataType.build(kind, dialect="duckdb"))
        call.database.execute(exp.Alter(this=table, kind="TABLE", actions=[action]))
