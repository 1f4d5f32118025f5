"""The view by which readers see the current release: it is made, recognized, and put back where it has gone."""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.catalog.column_names import CLASS, FROM_RELEASE
from kanon_duck.catalog.tables import released_table
from kanon_duck.catalog.views import MaskedView, table_type
from kanon_duck.errors import KanonError
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import Database


def show_release(database: Database, catalog: str, view: tuple[str, str], name: str) -> None:
    """Make the view that shows the current release, from the table of its rows.

    Parameters
    ----------
    view : tuple of str
        Schema and name of the view.
    name : str
        The masked view's, which names the table.
    """
    table = released_table(name)
    columns = database.rows(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? AND table_name = ? "
        "AND column_name NOT IN (?, ?) ORDER BY column_index",
        [catalog, table.db, table.name, CLASS, FROM_RELEASE],
    )
    shown = exp.select(*(exp.column(column, quoted=True) for (column,) in columns)).from_(table)
    made = exp.table_(view[1], db=view[0], catalog=catalog, quoted=True)
    database.execute(exp.Create(this=made, kind="VIEW", expression=shown))


def shows_released_rows(database: Database, catalog: str, view: MaskedView) -> bool:
    """Whether the masked view is still ours: not dropped, and not replaced by a view or table of the owner's."""
    found = database.value(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND lower(schema_name) = lower(?) "
        "AND lower(view_name) = lower(?)",
        [catalog, view.schema, view.view],
    )
    return found is not None and "kanon_released" in found


def refuse_unseen(call: Call, view: MaskedView) -> None:
    """Refuse to speak of what readers see where they do not see it.

    Raises
    ------
    KanonError
        When somebody has dropped, renamed or replaced the masked view.
    """
    if not shows_released_rows(call.database, call.catalog, view):
        raise KanonError(
            f"masked view {view.name} was dropped or replaced: readers do not see its release; "
            f"CALL kanon.refresh('{view.name}') puts it back where its name is free"
        )


def put_back(call: Call, view: MaskedView, dry_run: bool) -> list[str]:
    """Let readers see the current release again where somebody has dropped or renamed the masked view.

    That lasts whatever the call does afterwards, but for a dry run. Returns a warning that says so.

    Raises
    ------
    KanonError
        When there is something else of that name now.
    """
    if shows_released_rows(call.database, call.catalog, view):
        return []
    taken = table_type(call.database, call.catalog, view.schema, view.view)
    if taken:
        kind = "view" if taken == "VIEW" else "table"
        raise KanonError(
            f"masked view {view.name} was replaced by a {kind} of somebody's: readers do not see release "
            f"{view.release}; rename or drop the {kind}, and CALL kanon.refresh('{view.name}') puts the view back"
        )
    show_release(call.database, call.catalog, (view.schema, view.view), view.name)
    if not dry_run:
        call.commit_so_far()
    return [f"masked view {view.name} had been dropped or renamed by somebody: it was put back, and shows its release"]
