"""Reads the arguments `levels` and `edges` of a hierarchy into one form: edges from labels to their parents.

The result is a temporary table (child, parent), whose name they return: text only, each edge once. A label whose
parent is NULL is a root.
"""

from __future__ import annotations

import codecs

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.hierarchy.binding import canonical_text
from kanon_duck.hierarchy.tree import written
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime import names, source
from kanon_duck.runtime.call import Call
from kanon_duck.runtime.database import StatementError

SEPARATORS = {";": ";", "\t": "tab", "|": "|", ",": ","}
"""What may stand between the cells of a file, and what it is called; where two are in as many lines, the first."""


def read_edges(call: Call, text: str) -> str:
    """The edges from rows of (child, parent); a row with a label twice is ignored."""
    cells = _read(call, text, "edges")
    if len(cells) != 2:
        raise KanonError(
            f"edges: {read.shown(text)} has {len(cells)} columns; edges have two, the label and its parent"
        )
    _keep(call, "kanon_given", exp.select(cells[0].as_("child"), cells[1].as_("parent")).from_("temp.kanon_rows"))
    orphan = call.database.row("SELECT parent FROM temp.kanon_given WHERE child IS NULL LIMIT 1")
    if orphan is not None:
        raise KanonError(f"edges: a row with parent {read.shown(orphan[0])} has no label (NULL); leave such rows out")
    call.database.execute(
        "CREATE OR REPLACE TEMPORARY TABLE kanon_edges AS "
        "SELECT DISTINCT child, parent FROM temp.kanon_given WHERE parent IS DISTINCT FROM child "
        "UNION SELECT parent, NULL FROM temp.kanon_given WHERE parent IS NOT NULL "
        "AND parent NOT IN (SELECT child FROM temp.kanon_given WHERE parent IS DISTINCT FROM child)"
    )
    return "temp.kanon_edges"


def read_levels(call: Call, text: str) -> str:
    """The edges from lines that go from a leaf, level by level, to the root.

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
    return "temp.kanon_edges"


def _refuse_second_path(call: Call) -> None:
    found = call.database.row(
        "SELECT path[1], min(path), max(path) "
        "FROM temp.kanon_paths GROUP BY path[1] HAVING count(*) > 1 ORDER BY path[1] LIMIT 1"
    )
    if found is not None:
        raise KanonError(
            f"levels: '{found[0]}' has two paths ({written(found[1])} and {written(found[2])}); "
            "give it one, or two names that tell them apart"
        )


def _refuse_returning_labels(call: Call) -> None:
    returning = call.database.row(
        "SELECT list_filter(path, lambda label, place: list_contains(path[:place - 1], label))[1], "
        "path FROM temp.kanon_paths "
        "WHERE list_unique(path) < len(path) ORDER BY path LIMIT 1"
    )
    if returning is not None:
        raise KanonError(
            f"levels: the label '{returning[0]}' returns further up in {written(returning[1])}; "
            "give the level above another name"
        )


def _refuse_leaves_with_children(call: Call) -> None:
    both = call.database.row(
        "SELECT leaf.path[1], leaf.path, below.path "
        "FROM temp.kanon_paths AS leaf "
        "JOIN (SELECT path, unnest(path[2:]) AS parent FROM temp.kanon_paths) AS below "
        "ON below.parent = leaf.path[1] ORDER BY ALL LIMIT 1"
    )
    if both is not None:
        raise KanonError(
            f"levels: '{both[0]}' is a value ({written(both[1])}) and also the parent of another ({written(both[2])}); "
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
    if _is_file(call, text):
        _refuse_header(call, names_by_place, text, argument)
    return [canonical_text(exp.column(name), kind) for name, kind in zip(names_by_place, types, strict=True)]


def _query(call: Call, text: str, argument: str) -> exp.Query:
    """The rows of a query, a table or a file."""
    if not isinstance(text, str) or not text.strip():
        raise KanonError(
            f"{argument}: {read.shown(text)} is not a text; write a query, a table's name or a file's path"
        )
    return _read_file(call, text, argument) if _is_file(call, text) else source.read_source(call, text, argument)


def _is_file(call: Call, text: str) -> bool:
    """Whether a text is a file's path: it is no query, and no table has that name."""
    return not source.is_query(text) and source.find_table(call, names.parse(text)) is None


def _refuse_header(call: Call, columns: list[str], path: str, argument: str) -> None:
    """Every line of a hierarchy shares a label with another; a first line that does not holds names of columns."""
    labels = f"list_filter([{', '.join(columns)}], lambda label: label IS NOT NULL)"
    header = call.database.value(
        f"WITH lines AS (SELECT rowid AS line, {labels} AS labels FROM temp.kanon_rows) "
        "SELECT labels FROM lines AS first WHERE line = (SELECT min(line) FROM lines) AND labels <> [] "
        "AND (SELECT count(*) FROM lines) > 1 "
        "AND NOT EXISTS (FROM lines AS other WHERE line > first.line AND list_has_any(other.labels, first.labels))"
    )
    if header is not None:
        raise KanonError(
            f"{argument}: line 1 of {read.shown(path)} looks like a header ({', '.join(header)}): no other line has a "
            "label of it; leave it out"
        )


def _read_file(call: Call, path: str, argument: str) -> exp.Query:
    """The lines of a CSV file without a header, every cell as text; lines may differ in length."""
    try:
        _refuse_encoding(call, path, argument)
        query = _csv_query(path, *_layout(call, path, argument))
        call.database.execute(exp.select(exp.Count(this=exp.Star())).from_(query.subquery("source")))
    except StatementError as error:
        raise KanonError(
            f"{argument}: {read.shown(path)} is no query (SELECT, FROM or WITH), no table or view, and no file "
            f"that can be read ({error.reason}); write one of these"
        ) from error
    return query


def _refuse_encoding(call: Call, path: str, argument: str) -> None:
    """A file is text in UTF-8; of others it is said what they look like."""
    for (content,) in call.database.rows("SELECT content FROM read_blob(?)", [path]):
        encoding = _encoding(content)
        if encoding != "utf-8":
            reading = f"FROM read_csv({read.shown(path)}, encoding = '{encoding}', header = false, all_varchar = true)"
            raise KanonError(
                f"{argument}: {read.shown(path)} is no UTF-8 text and looks like {encoding}: save it as UTF-8, or "
                f"write a query that says so, as {reading}"
            )


def _encoding(content: bytes) -> str:
    """The encoding of a text; none that people write in UTF-8 has zero bytes."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in content:
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _layout(call: Call, path: str, argument: str) -> tuple[str, int]:
    """A file's separator, which is the one that most lines hold, and an upper bound on its number of columns."""
    counts = ", ".join(
        "count(*) FILTER (contains(line, ?)), coalesce(max(len(string_split(line, ?))), 1)" for _ in SEPARATORS
    )
    [found] = call.database.rows(
        f"SELECT {counts} FROM (SELECT unnest(string_split(content, chr(10))) AS line FROM read_text(?))",
        [*(separator for separator in SEPARATORS for _ in range(2)), path],
    )
    lines, widths = dict(zip(SEPARATORS, found[::2], strict=True)), dict(zip(SEPARATORS, found[1::2], strict=True))
    separator = max(SEPARATORS, key=lambda each: lines[each])
    if not lines[separator]:
        raise KanonError(
            f"{argument}: no line of {read.shown(path)} has a {' or '.join(SEPARATORS.values())}; "
            "write one of these between levels"
        )
    return separator, widths[separator]


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
