"""Writes ``verify.sql``: one plain SELECT that recomputes the declared models from what was published.

It needs no kanon_duck, and any DuckDB runs it. It looks for the same things as ``kanon.check``, whose SQL it shares
where that can be: what a person is (`unit`) readers do not see, and where persons are counted only rows, and different
values, can be counted from what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent, indent

from sqlglot import exp

from kanon_duck.privacy.diversity import classes_of_values, frequencies_asked
from kanon_duck.privacy.models import TOLERANCE, PrivacyModel, SensitiveAttribute
from kanon_duck.privacy.sensitive import find_nodes, has_nodes, is_ordered, joined_nodes, node_table, position
from kanon_duck.publishing.content import MARK, Content, model_text
from kanon_duck.runtime.database import Database

HEADER = """\
-- {mark}{what}
-- It recomputes the models from what was published. No rows: everything holds.
-- {how}
SELECT *
FROM (
"""

FOOTER = """
) AS checked
WHERE violating_rows > 0
"""


def verification_of(path: Path) -> Path:
    """Where ``verify.sql`` of a published file is; files of several kinds may have one name but for its end."""
    return path.with_name(f"{path.name}.verify.sql")


def is_verification(path: Path) -> bool:
    """Whether a file is a ``verify.sql`` of kanon_duck's."""
    return path.is_file() and path.read_bytes().startswith(f"-- {MARK}".encode())


def write_verification(database: Database, contents: list[tuple[Content, exp.Expression]], how: str) -> str:
    """The text of ``verify.sql``.

    Parameters
    ----------
    database : Database
        Of the masked views.
    contents : list of (Content, sqlglot expression)
        Each release, and the relation from which its rows are read.
    how : str
        How to run it, in one line.
    """
    what = "; ".join(f"{each.release} of {each.view.name}, {model_text(each.model)}" for each, _ in contents)
    body = "\nUNION ALL\n".join(
        check for content, relation in contents for check in _checks(database, content, relation)
    )
    return HEADER.format(mark=MARK, what=_one_line(what), how=_one_line(how)) + indent(body, "    ") + FOOTER


def _checks(database: Database, content: Content, relation: exp.Expression) -> Iterator[str]:
    """One SELECT for each requirement of a release."""
    model = _as_readers_count(content.model)
    by_role = _by_role(content, model)
    rows = f"({exp.select(*by_role).from_(relation).sql(dialect='duckdb')})"
    classes = [f"class_{place}" for place in range(len(content.cells))]

    def check(requirement: str, attribute: str | None, required: float, achieved: str, violated: str, of: str) -> str:
        named = [_text(content.table), str(content.release), _text(requirement)]
        named += ["NULL" if attribute is None else _text(attribute), f"CAST({required!r} AS DOUBLE)"]
        columns = ("table_name", "release", "requirement", "attribute", "required")
        selected = ", ".join(f"{value} AS {name}" for value, name in zip(named, columns, strict=True))
        return (
            f"SELECT {selected}, CAST({achieved} AS DOUBLE) AS achieved,\n"
            f"       CAST(coalesce(sum(rows) FILTER (WHERE {violated}), 0) AS BIGINT) AS violating_rows\n"
            f"FROM (\n{indent(dedent(of).strip(), '    ')}\n) AS classes"
        )

    sizes = f"SELECT count(*) AS rows FROM {rows} AS released GROUP BY {', '.join(classes)}"
    yield check("k", None, content.model.k, "min(rows)", f"rows < {content.model.k}", sizes)
    if not model.on_values:
        return
    own = f"({exp.select(*by_role).from_(content.rows.subquery('own')).sql(dialect='duckdb')})"
    find_nodes(database, model, own)
    for place, attribute in enumerate(model.attributes):
        of_values = classes_of_values(model, rows, classes, place)
        for asked in frequencies_asked(model, attribute):
            if asked.requirement != "max_frequency":
                yield check(
                    asked.requirement, attribute.name, asked.required, asked.achieved, asked.violated, of_values
                )
        joined = rows
        if has_nodes(model, attribute):
            joined = f"(SELECT * FROM {rows} AS released {_nodes(database, own, place, attribute)})"
        if attribute.protected:
            assert model.p is not None
            strong = f"""
                SELECT count(*) AS rows, count(DISTINCT strong) + max((sensitive_{place} IS NULL)::INTEGER) AS p
                FROM {joined} AS released GROUP BY {", ".join(classes)}
            """
            yield check("p", attribute.name, model.p, "min(p)", f"p < {model.p}", strong)
        if model.t is not None:
            too_far = f"distance > {model.t + TOLERANCE!r}"
            distances = _distances(database, model, joined, classes, place, attribute)
            yield check("t", attribute.name, model.t, "max(distance)", too_far, distances)


def _as_readers_count(model: PrivacyModel) -> PrivacyModel:
    """The models that can be recomputed by somebody who does not know which person a row is about."""
    if model.unit is None:
        return model
    return replace(model, unit=None, entropy_l=None, recursive_cl=None, alpha=None, t=None)


def _by_role(content: Content, model: PrivacyModel) -> list[exp.Expr]:
    """The columns that models look at, under the names that their SQL has for them."""
    named = {f"class_{place}": cell for place, cell in enumerate(content.cells)}
    named |= {f"sensitive_{place}": attribute.name for place, attribute in enumerate(model.attributes)}
    return [exp.column(name, quoted=True).as_(role) for role, name in named.items()]


def _nodes(database: Database, own: str, place: int, attribute: SensitiveAttribute) -> str:
    """SQL that joins the nodes above the released values of an attribute, written out."""
    nodes = f"SELECT DISTINCT CAST(sensitive_{place} AS VARCHAR) AS value, nodes_{place}.* EXCLUDE (value)"
    found = database.rows(
        f"{nodes} FROM {own} AS released {joined_nodes(place, attribute, 'released')} "
        f"WHERE sensitive_{place} IS NOT NULL ORDER BY ALL"
    )
    columns = [name for name, *_ in database.rows(f"DESCRIBE {node_table(place)}")]
    listed = ", ".join("(" + ", ".join(map(_text, row)) + ")" for row in found)
    values = f"VALUES {listed}" if found else f"SELECT {', '.join(f'NULL AS {name}' for name in columns)} LIMIT 0"
    named = f"nodes({', '.join(columns)})"
    return f"LEFT JOIN ({values}) AS {named} ON nodes.value = CAST(sensitive_{place} AS VARCHAR)"


def _distances(
    database: Database, model: PrivacyModel, joined: str, classes: list[str], place: int, attribute: SensitiveAttribute
) -> str:
    """SQL for the distance of each class's values from those of all rows: variational, or along their order."""
    levels = [f"sensitive_{place}"]
    if has_nodes(model, attribute):
        found = database.rows(f"DESCRIBE {node_table(place)}")
        levels = [name for name, *_ in found if name.startswith("level_")]
    elif is_ordered(attribute):
        levels = [position(levels[0], attribute.column_type)]
    distances = f"""
        SELECT class, any_value(size) AS rows, sum(greatest(frequency / size - share, 0)) / {len(levels)} AS distance
        FROM pairs JOIN sizes USING (class)
        JOIN shares ON shares.level = pairs.level AND shares.value IS NOT DISTINCT FROM pairs.value GROUP BY class
    """
    if is_ordered(attribute):
        distances = """
        SELECT class, any_value(size) AS rows, sum(apart) / greatest((SELECT count(*) FROM shares) - 1, 1) AS distance
        FROM (
            SELECT sizes.class, size, abs(sum(coalesce(frequency, 0) / size - share) OVER (
                       PARTITION BY sizes.class ORDER BY shares.value)) AS apart
            FROM sizes CROSS JOIN shares
            LEFT JOIN pairs ON pairs.class = sizes.class AND pairs.value = shares.value
        ) AS cumulated GROUP BY class
        """
    return f"""
        WITH numbered AS (
            SELECT dense_rank() OVER (ORDER BY {", ".join(classes)}) AS class, [{", ".join(levels)}] AS path
            FROM {joined} AS released
        ), pairs AS (
            SELECT class, level, value, count(*) AS frequency
            FROM (SELECT class, unnest(path) AS value, unnest(range({len(levels)})) AS level FROM numbered) AS paths
            GROUP BY class, level, value
        ), sizes AS (
            SELECT class, count(*) AS size FROM numbered GROUP BY class
        ), shares AS (
            SELECT level, value, sum(frequency) / (SELECT count(*) FROM numbered) AS share
            FROM pairs GROUP BY level, value
        )
        {dedent(distances).strip()}
    """


def _text(value: str | None) -> str:
    """A text as SQL writes it."""
    return "NULL" if value is None else exp.Literal.string(value).sql(dialect="duckdb")


def _one_line(text: str) -> str:
    """A text that stays a comment: names may hold line breaks."""
    return " ".join(text.split())
