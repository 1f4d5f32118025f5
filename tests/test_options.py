"""An option of a masked view is named alike wherever it has to be named."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import duckdb

from kanon_duck.catalog.options import METHODS, OPTIONS
from kanon_duck.catalog.settings import Settings
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.database import script

OF_THE_CALL = {"view_name", "new_series", "dry_run"}

DERIVED = {"view", "name", "query", "source_warnings", "columns", "model"}
"""What settings hold that nobody types as such."""


def parameters(macro: str) -> tuple[list[str], list[str]]:
    """Parameters of a procedure's macro, and the names under which it passes them on."""
    text = script("procedures.sql")
    found = re.search(rf"MACRO kanon\.{macro}\((.*?)\) AS TABLE(.*?);", text, re.DOTALL)
    assert found, macro
    passed = re.search(rf"run\('{macro}',\s+system\.main\.json_object\((.*)\), view_name\)", found[2], re.DOTALL)
    assert passed, macro
    return re.findall(r"(\w+)(?=\s*(?::=|,|$))(?<!NULL)", found[1]), re.findall(r"'(\w+)'", passed[1])


def test_create_masked_view_takes_every_option() -> None:
    taken, passed = parameters("create_masked_view")
    assert taken == passed == ["view_name", *OPTIONS, "new_series"]


def test_rebuild_takes_every_option() -> None:
    taken, passed = parameters("rebuild")
    assert set(taken) == set(passed) == {*OPTIONS, *OF_THE_CALL}


def test_the_catalog_keeps_every_option(connection: duckdb.DuckDBPyConnection) -> None:
    columns = {
        name: column_type
        for name, column_type, *_ in connection.execute("DESCRIBE kanon_private.settings").fetchall()
        if name in OPTIONS
    }
    assert columns == OPTIONS


def test_masked_views_shows_every_option(connection: duckdb.DuckDBPyConnection) -> None:
    columns = [name for name, *_ in connection.execute("DESCRIBE kanon.masked_views").fetchall()]
    assert columns[1 : 1 + len(OPTIONS)] == list(OPTIONS)


def test_settings_read_every_option() -> None:
    read = {each.name for each in fields(Settings)} | {each.name for each in fields(PrivacyModel)}
    assert read - DERIVED - {"attributes"} == set(OPTIONS) - {"protected"}


def test_the_reference_explains_every_option() -> None:
    checkout = Path(__file__).resolve().parent.parent
    texts = [path.read_text(encoding="utf-8") for path in [checkout / "README.md", *checkout.glob("docs/*.md")]]
    explained = {
        name
        for text in texts
        for row in re.findall(r"^\| (.*?) \|", text, re.M)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert set(OPTIONS) - explained == set()


def test_every_method_is_there() -> None:
    from kanon_duck import clustering

    assert list(METHODS) == list(clustering.METHODS)
