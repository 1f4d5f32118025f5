"""Writes releases with DuckDB's COPY, one file each, and reads them back; what formats have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlglot import exp

from kanon_duck.publishing.content import Content
from kanon_duck.publishing.files import new_files
from kanon_duck.publishing.tables import fingerprint, refuse_other_rows, refuse_violations
from kanon_duck.publishing.verify import write_verification
from kanon_duck.runtime.call import Call

Relation = Callable[[Content, str], exp.Expression]
"""The relation that reads a release from a file."""


def copy_to_files(
    call: Call,
    contents: dict[Path, Content],
    verification: Path,
    options: Callable[[Content], str],
    relation: Relation,
) -> None:
    """Write each release into a new file, read it back, and let all of them take the place of the old ones.

    Parameters
    ----------
    contents : dict
        The release of each file.
    verification : Path
        Where ``verify.sql`` goes.
    options : callable
        Options of COPY for a release.
    relation : callable
    """
    database = call.database
    with new_files(call, verification, *contents) as (new_verification, *written):
        for new, content in zip(written, contents.values(), strict=True):
            literal = exp.Literal.string(str(new)).sql(dialect="duckdb")
            database.execute(f"COPY ({content.in_order.sql(dialect='duckdb')}) TO {literal} ({options(content)})")
            rows = exp.select("*").from_(relation(content, str(new)))
            refuse_other_rows(database, fingerprint(database, content, content.rows), content, rows)
            call.checkpoint(None)
        read = [(content, relation(content, str(new))) for new, content in zip(written, contents.values(), strict=True)]
        refuse_violations(database, write_verification(database, read, "of the new files"))
        how = f"Run it in the folder of the files: duckdb < {verification.name}"
        named = [(content, relation(content, path.name)) for path, content in contents.items()]
        new_verification.write_text(write_verification(database, named, how), encoding="utf-8")
