"""Reads the arguments `levels` and `edges` of a hierarchy into one form: edges from labels to their parents.

The result is the temporary table ``kanon_edges(child, parent)``: text only, each edge once. A label whose
parent is NULL is a root.
"""

from __future__ import annotations

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.hierarchy.binding import canonical_text
from kanon_duck.runtime import names, source
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError

SEPARATORS = (";", ",")


def read_edges(call: Call, text: str) -> None:
    """Fill ``kanon_edges`` from rows of (child, parent); a row with a label twice is ignored."""
    cells = _read(call, text, "edges")
    if len(cells) != 2:
        raise KanonError(f"edges: {text!r} has {len(cells)} columns; edges have two, the label and its parent")
    _keep(call, "kanon_given", exp.select(cells[0].as_("child"), cells[1].as_("parent")).from_("temp.kanon_rows"))
    orphan = call.database.row("SELECT parent FROM temp.kanon_given WHERE child IS NULL LIMIT 1")
    if orphan is not None:
        raise KanonError(f"edges: a row with parent {orphan[0]!r} has no label (NULL); leave such rows out")
    call.database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_edges AS "
        "SELECT DISTINCT child, parent FROM temp.kanon_given WHERE parent IS DISTINCT FROM child "
        "UNION SELECT parent, NULL FROM temp.kanon_given WHERE parent IS NOT NULL "
        "AND parent NOT IN (SELECT child FROM temp.kanon_given WHERE parent IS DISTINCT FROM child)"
    )


def read_levels(call: Call, text: str) -> None:
    """Fill ``kanon_edges`` from lines that go from a leaf, level by level, to the root.

    NULLs at the right end of a line make it shorter; equal neighbours are one node.

    Raises
    ------
    KanonError
        When a line has no leaf, a hole, or a label that returns, or a leaf has two paths or children.
    """
    line = exp.Array(expressions=_read(call, text, "levels"))
    _keep(call, "kanon_lines", exp.select(line.as_("labels")).from_("temp.kanon_rows").distinct())
    broken = call.database.row(
        "SELECT labels::VARCHAR FROM temp.kanon_lines "
        "WHERE labels[1] IS NULL OR list_count(labels[:list_count(labels)]) < list_count(labels) "
        "ORDER BY labels LIMIT 1"
    )
    if broken is not None:
        raise KanonError(
            f"levels: the line {broken[0]} lacks a label before others; a line names its leaf first and "
            "may be shorter only at its end"
        )
    call.database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_paths AS SELECT DISTINCT list_filter("
        "labels[:list_count(labels)], lambda label, place: place = 1 OR label <> labels[place - 1]) AS path "
        "FROM temp.kanon_lines"
    )
    _refuse_second_path(call)
    _refuse_returning_labels(call)
    _refuse_leaves_with_children(call)
    call.database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_edges AS "
        "SELECT DISTINCT unnest(path) AS child, unnest(path[2:] || [NULL]) AS parent FROM temp.kanon_paths"
    )


def _refuse_second_path(call: Call) -> None:
    found = call.database.row(
        "SELECT path[1], array_to_string(min(path), ' → '), array_to_string(max(path), ' → ') "
        "FROM temp.kanon_paths GROUP BY path[1] HAVING count(*) > 1 ORDER BY path[1] LIMIT 1"
    )
    if found is not None:
        raise KanonError(
            f"levels: '{found[0]}' has two paths ({found[1]} and {found[2]}); "
            "give it one, or two names that tell them apart"
        )


def _refuse_returning_labels(call: Call) -> None:
    returning = call.database.row(
        "SELECT list_filter(path, lambda label, place: list_contains(path[:place - 1], label))[1], "
        "array_to_string(path, ' → ') FROM temp.kanon_paths "
        "WHERE list_unique(path) < len(path) ORDER BY path LIMIT 1"
    )
    if returning is not None:
        raise KanonError(
            f"levels: the label '{returning[0]}' returns further up in {returning[1]}; "
            "give the level above another name"
        )


def _refuse_leaves_with_children(call: Call) -> None:
    both = call.database.row(
        "SELECT leaf.path[1], array_to_string(leaf.path, ' → '), array_to_string(below.path, ' → ') "
        "FROM temp.kanon_paths AS leaf "
        "JOIN (SELECT path, unnest(path[2:]) AS parent FROM temp.kanon_paths) AS below "
        "ON below.parent = leaf.path[1] ORDER BY ALL LIMIT 1"
    )
    if both is not None:
        raise KanonError(
            f"levels: '{both[0]}' is a value ({both[1]}) and also the parent of another ({both[2]}); "
            "give one of them another name"
        )


def _read(call: Call, text: str, argument: str) -> list[exp.Expression]:
    """Put the rows of a query, a table or a file into ``kanon_rows``, and return its cells as canonical text.

    The columns are renamed by position, so their names do not matter.
    """
    rows = _query(call, text, argument)
    types = [kind for _, kind in source.columns(call, rows)]
    names_by_place = [f"column_{place}" for place in range(len(types))]
    given = exp.TableAlias(this=exp.to_identifier("given"), columns=[*map(exp.to_identifier, names_by_place)])
    with call.in_callers_schema():
        _keep(call, "kanon_rows", exp.select("*").from_(exp.Subquery(this=rows, alias=given)))
    return [canonical_text(exp.column(name), kind) for name, kind in zip(names_by_place, types, strict=True)]


def _query(call: Call, text: str, argument: str) -> exp.Query:
    """The rows of a query, a table or a file."""
    if not isinstance(text, str) or not text.strip():
        raise KanonError(f"{argument}: {text!r} is not a text; write a query, a table's name or a file's path")
    if source.is_query(text) or source.find_table(call, names.parse(text)) is not None:
        return source.read_source(call, text, argument)
    return _read_file(call, text, argument)


def _read_file(call: Call, path: str, argument: str) -> exp.Query:
    """The lines of a CSV file without a header, every cell as text; lines may differ in length."""
    try:
        query = _csv_query(path, *_layout(call, path))
        call.database.execute(exp.select(exp.Count(this=exp.Star())).from_(query.subquery("source")))
    except StatementError as error:
        reason = str(error.__cause__).splitlines()[0]
        raise KanonError(
            f"{argument}: {path!r} is no query (SELECT, FROM or WITH), no table or view, and no file "
            f"that can be read ({reason}); write one of these"
        ) from error
    return query


def _layout(call: Call, path: str) -> tuple[str, int]:
    """A file's separator (';' unless more lines contain ','), and an upper bound on its number of columns."""
    counts = ", ".join(
        f"count(*) FILTER (contains(line, '{separator}')), coalesce(max(len(string_split(line, '{separator}'))), 1)"
        for separator in SEPARATORS
    )
    ((semicolons, by_semicolon, commas, by_comma),) = call.database.rows(
        f"SELECT {counts} FROM (SELECT unnest(string_split(content, chr(10))) AS line FROM read_text(?))",
        [path],
    )
    return (",", by_comma) if commas > semicolons else (";", by_semicolon)


def _csv_query(path: str, separator: str, width: int) -> exp.Select:
    columns = [
        exp.PropertyEQ(this=exp.to_identifier(f"level_{level}"), expression=exp.Literal.string("VARCHAR"))
        for level in range(width)
    ]
    options = {
        "columns": exp.Struct(expressions=columns),
        "delim": exp.Literal.string(separator),
        "header": exp.false(),
        "auto_detect": exp.false(),
        "null_padding": exp.true(),
        "parallel": exp.false(),
    }
    named = [exp.EQ(this=exp.to_identifier(name), expression=option) for name, option in options.items()]
    return exp.select("*").from_(source.table_function("read_csv", exp.Literal.string(path), *named))


def _keep(call: Call, name: str, rows: exp.Query) -> None:
    """Put rows into a temporary table."""
    call.database.execute(exp.Create(kind="TEMPORARY TABLE", replace=True, this=exp.to_table(name), expression=rows))
