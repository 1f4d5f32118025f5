"""Takes the tables of an earlier catalog version to a later one, by the SQL files of the folder ``sql/migrations``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.runtime.call import Call, Row
from kanon_duck.runtime.database import SQL_FOLDER, Database, StatementError

FOLDER = SQL_FOLDER / "migrations"
"""One file per step; its name begins with the catalog version that it makes. Its README tells how steps are written."""

FOR_EACH = re.compile(r"^-- for each: (.+)\n((?:.*\n)*?)-- end\n", re.MULTILINE)
"""A query, and the statements that are run for each of its rows."""

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Step:
    """What takes a database from one catalog version to the next.

    Attributes
    ----------
    name : str
        Of its file.
    changes : str
        What it changes, in the words of its first line.
    script : str
        The text of the file.
    """

    name: str
    changes: str
    script: str


def steps_between(catalog: str, version: int, target: int) -> list[Step]:
    """The steps from a catalog version of a database to another, in their order; none where the versions are the same.

    Raises
    ------
    KanonError
        When there are no steps from so early a version.
    """
    files = {int(file.name.split("_")[0]): file for file in FOLDER.glob("[0-9]*_*.sql")}
    try:
        return [_step(files[number]) for number in range(version + 1, target + 1)]
    except KeyError:
        raise KanonError(
            f"database {catalog} was written by an earlier kanon_duck (catalog version {version}), which kept too "
            "little to bring its masked views up to date: drop these and the schemas kanon, kanon_private, "
            "kanon_released, kanon_history and kanon_history_classes, and make the masked views again"
        ) from None


def _step(file: Path) -> Step:
    """Read a step."""
    script = file.read_text(encoding="utf-8")
    return Step(file.name, script.partition("\n")[0].removeprefix("-- ").removesuffix("."), script)


def run_steps(database: Database, catalog: str, steps: list[Step]) -> None:
    """Run steps inside the open transaction.

    Afterwards the connection resolves unqualified names in DuckDB's own schema and in ours.

    Raises
    ------
    KanonError
        When DuckDB refuses a statement of a step.
    """
    Call(database, {}, catalog=catalog).use_our_schemas()
    for step in steps:
        try:
            _run(database, step.script)
        except StatementError as error:
            raise KanonError(
                f"database {catalog} could not be upgraded and stays as it was: step {step.name} failed "
                f"({error.reason}); mend what this names, or keep using the kanon_duck that wrote the database"
            ) from error


def _run(database: Database, script: str) -> None:
    """Run a script, its marked parts once for each row of their queries."""
    first, *others = FOR_EACH.split(script)
    database.execute(first)
    for query, statements, following in zip(others[0::3], others[1::3], others[2::3], strict=True):
        for row in database.records(query):
            database.execute(_filled(statements, row))
        database.execute(following)


def _filled(statements: str, row: Row) -> str:
    """Put the values of a row where their columns are named: numbers as they are, texts as quoted identifiers."""

    def word(named: re.Match[str]) -> str:
        value = row[named[1]]
        return str(value) if isinstance(value, int) else exp.Identifier(this=value, quoted=True).sql(dialect="duckdb")

    return PLACEHOLDER.sub(word, statements)
