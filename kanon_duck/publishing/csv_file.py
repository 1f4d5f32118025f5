"""Publishes into a CSV file, with a header, as a spreadsheet reads it."""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp

from kanon_duck.publishing.content import Content
from kanon_duck.publishing.flat_files import copy_to_files
from kanon_duck.publishing.verify import verification_of
from kanon_duck.runtime.call import Call


def publish_csv(call: Call, path: Path, content: Content) -> None:
    """Write a release; what cannot stand in a CSV file (models, release, date) is told in ``verify.sql`` beside it."""
    copy_to_files(call, {path: content}, verification_of(path), lambda _: "FORMAT csv, HEADER", _relation)


def _relation(content: Content, path: str) -> exp.Expression:
    """Reads the file with the types of the release: an empty field is NULL, and "" an empty text."""
    columns = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in content.types.items())
    options = "auto_detect = false, header = true, allow_quoted_nulls = false"
    relation = f"read_csv({_text(path)}, {options}, columns = {{{columns}}})"
    return exp.maybe_parse(relation, into=exp.Table, dialect="duckdb")


def _text(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")
