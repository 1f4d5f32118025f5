"""What Python users meet first: help, paths, types, and DataFrames."""

from __future__ import annotations

import doctest
import pydoc
import types
from pathlib import Path

import duckdb
import pandas
import pytest

import kanon_duck

pytestmark = pytest.mark.surface


def test_help_begins_with_what_it_is_and_an_example() -> None:
    text = pydoc.plain(pydoc.render_doc(kanon_duck))
    assert text.index("k-anonymous views inside DuckDB") < text.index(">>> import kanon_duck") < text.index("PACKAGE")


def test_the_example_of_help_runs() -> None:
    failed, examples = doctest.testmod(kanon_duck)
    assert failed == 0
    assert examples >= 5


def test_connect_takes_a_path(tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    for spelled in (file, str(file)):
        with kanon_duck.connect(spelled) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("people",)
    assert file.exists()


def test_every_public_name_is_a_function_or_class_and_hides_no_module() -> None:
    package = Path(kanon_duck.__file__).parent
    modules = {file.stem for file in package.glob("*.py")} | {
        file.parent.name for file in package.glob("*/__init__.py")
    }
    assert not modules & set(kanon_duck.__all__)
    assert isinstance(kanon_duck.installation, types.ModuleType)
    assert callable(kanon_duck.install)


def test_type_checkers_find_the_types() -> None:
    assert (Path(kanon_duck.__file__).parent / "py.typed").is_file()


PEOPLE = pandas.DataFrame({"id": range(12), "age": [20 + i % 6 for i in range(12)], "city": list("ABC") * 4})
MASK = (
    "CALL kanon.create_masked_view('masked', source => '{}', key => 'id', quasi_identifiers => ['age', 'city'], k => 3)"
)


@pytest.mark.parametrize("source", ["registered", "FROM registered"])
def test_a_registered_data_frame_is_no_source(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    connection.register("registered", PEOPLE)
    with pytest.raises(duckdb.Error, match="source: "):
        connection.execute(MASK.format(source))


def test_a_data_frame_stored_as_a_table_is_masked_and_comes_back_as_a_data_frame(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.register("registered", PEOPLE)
    connection.execute("CREATE TABLE people AS FROM registered")
    connection.execute(MASK.format("people"))
    masked = connection.sql("FROM masked").df()
    assert list(masked.columns) == ["age", "age_min", "age_max", "city"]
    assert masked.groupby(list(masked.columns)).size().min() >= 3
