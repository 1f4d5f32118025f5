"""Triggers on the source that note the keys of changed rows in a private table, in the writer's transaction.

Idea: statement triggers write the keys of the rows that a statement inserts, deletes, or updates, as they were and
as they are. A refresh then
compares only rows with these keys. Cost: that of the change. Needs DuckDB 2.0 and a table with a key. Triggers get
lost when their table is replaced, so whoever relies on them looks whether they still stand.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from kanon_duck.catalog.columns import columns_by_role, private_names
from kanon_duck.catalog.settings import Settings
from kanon_duck.catalog.tables import changes_table
from kanon_duck.catalog.views import find_view, record_state, stored_settings, table_type
from kanon_duck.errors import KanonError
from kanon_duck.runtime import names
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.source import find_table, is_query

NOTED = {"inserted": ("INSERT", "new"), "deleted": ("DELETE", "old"), "was": ("UPDATE", "old"), "is": ("UPDATE", "new")}
"""By the end of a trigger's name: the kind of statement, and which of its rows it notes."""

REFUSED_STATEMENTS = "INSERT ... ON CONFLICT DO UPDATE, INSERT OR REPLACE, MERGE, and new names and types of columns"
"""What DuckDB refuses on a table with triggers."""


def trigger_source(call: Call, settings: Settings) -> exp.Table:
    """The source as a table that can have triggers.

    Raises
    ------
    KanonError
        When it cannot.
    """
    reason = None
    table = None if is_query(settings.source) else find_table(call, names.parse(settings.source))
    known = call.database.value("SELECT count(*) FROM duckdb_functions() WHERE function_name = 'duckdb_triggers'")
    if not known:
        reason = "this DuckDB has no triggers: they come with DuckDB 2.0"
    elif table is None or table_type(call.database, table.catalog, table.db, table.name) != "BASE TABLE":
        reason = f"the source {settings.source} is not a table"
    elif table.catalog != call.catalog:
        reason = f"the source is in database {table.catalog}, and a trigger cannot write into {call.catalog}"
    elif not settings.key:
        reason = "the source has no key by which to note a row"
    if reason is not None or table is None:
        raise KanonError(f"capture is 'trigger', but {reason}: use capture => 'diff'")
    return table


def install_triggers(call: Call, settings: Settings, view_number: int) -> None:
    """Let the source note its changes from now on.

    What is noted first is no key at all: the next refresh compares everything (see `notes_are_complete`).
    """
    table = trigger_source(call, settings)
    log = exp.to_table(changes_table(view_number))
    log.set("catalog", exp.to_identifier(call.catalog, quoted=True))  # writers may use another database
    keys = columns_by_role(settings)[: len(settings.key)]
    call.database.execute(f"DROP TABLE IF EXISTS {changes_table(view_number)}")
    call.database.execute(exp.Create(this=log, kind="TABLE", expression=exp.select(*keys).from_(table).limit(0)))
    for end, (event, side) in NOTED.items():
        rows = exp.to_identifier(f"{side}_rows")
        noted = exp.select(*(exp.column(name, quoted=True) for name in settings.key)).from_(exp.Table(this=rows.copy()))
        properties = exp.TriggerProperties(
            table=table.copy(),
            timing="AFTER",
            events=[exp.TriggerEvent(this=event)],
            referencing=exp.TriggerReferencing(**{side: rows}),
            for_each="STATEMENT",
            execute=exp.insert(noted, log.copy()),
        )
        name = exp.to_identifier(f"kanon_{view_number}_{end}")
        made = exp.Create(this=name, kind="TRIGGER", properties=exp.Properties(expressions=[properties]), replace=False)
        call.database.execute(made)
    # a transaction that is open now does not see the triggers, and may still change the source
    call.database.execute(f"INSERT INTO {changes_table(view_number)} DEFAULT VALUES")


def _standing(call: Call, view_number: int) -> list[tuple[str, str, str]]:
    """Schema, table and name of the triggers of a masked view; another database may have some of the same names."""
    return call.database.rows(
        "SELECT schema_name, table_name, trigger_name FROM duckdb_triggers() "
        "WHERE database_name = ? AND trigger_name IN (SELECT unnest(?))",
        [call.catalog, [f"kanon_{view_number}_{end}" for end in NOTED]],
    )


def triggers_stand(call: Call, view_number: int) -> bool:
    """Whether all triggers of a masked view are still there."""
    return len(_standing(call, view_number)) == len(NOTED)


def remove_triggers(call: Call, view_number: int) -> None:
    """Let the source note nothing any more."""
    for schema, table, trigger in _standing(call, view_number):
        on = exp.table_(table, db=schema, catalog=call.catalog, quoted=True).sql(dialect="duckdb")
        call.database.execute(f"DROP TRIGGER {exp.to_identifier(trigger).sql(dialect='duckdb')} ON {on}")
    call.database.execute(f"DROP TABLE IF EXISTS {changes_table(view_number)}")


def mend_triggers(call: Call) -> list[str]:
    """Make triggers again that write into a database of another name than this one has now.

    So it is in a file that was renamed, or restored under another name: DuckDB then refuses every write to the source.
    Where the source cannot be read, they are only removed; a refresh makes them again. That lasts, whatever the call
    does afterwards. Returns a warning for each masked view.
    """
    views = call.database.rows(
        "SELECT view_number, name, source FROM kanon_private.masked_views "
        "JOIN kanon_private.settings USING (view_number, settings_version) "
        "WHERE dropped_at IS NULL AND capture = 'trigger'"
    )
    if not views or call.database.value(
        "SELECT readonly FROM duckdb_databases() WHERE database_name = ?", [call.catalog]
    ):
        return []
    warnings = []
    for view_number, name, source in views:
        if _write_here(call, view_number):
            continue
        remove_triggers(call, view_number)
        view = find_view(replace(call, arguments={"view_name": name}, schema="main"))
        with suppress(KanonError):
            install_triggers(*stored_settings(call, view), view_number)
        warnings.append(
            f"the triggers of {source} were made when this database had another name than {call.catalog}, so that "
            "every write was refused: they were made again, and the next refresh compares source and members row by row"
        )
        record_state(call.database, view_number, reason=warnings[-1])
    if warnings:
        call.commit_so_far()
    return warnings


def _write_here(call: Call, view_number: int) -> bool:
    """Whether all triggers of a masked view that are still there write into this database."""
    target = f"INTO {call.catalog}.{changes_table(view_number)}"
    return not call.database.value(
        "SELECT count(*) FROM duckdb_triggers() WHERE database_name = ? AND trigger_name IN (SELECT unnest(?)) "
        "AND NOT contains(lower(replace(sql, '\"', '')), lower(replace(?, '\"', '')))",
        [call.catalog, [f"kanon_{view_number}_{end}" for end in NOTED], target],
    )


def clear_notes(call: Call, settings: Settings, view_number: int) -> None:
    """After a refresh: what was noted has been brought in, and lost triggers are made again."""
    if settings.capture == "trigger":
        if triggers_stand(call, view_number):
            call.database.execute(f"DELETE FROM {changes_table(view_number)}")
        else:
            remove_triggers(call, view_number)
            install_triggers(call, settings, view_number)


def notes_are_complete(call: Call, view_number: int) -> bool:
    """Whether everything has been compared since the triggers were made, and they have noted all changes after that."""
    return not call.database.value(f"SELECT count(*) FROM {changes_table(view_number)} WHERE key_0 IS NULL")


def noted_keys(settings: Settings, view_number: int) -> str:
    """SQL for the keys that were noted."""
    return f"SELECT {', '.join(private_names(settings, 'key'))} FROM {changes_table(view_number)}"
