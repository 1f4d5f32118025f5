"""Real microdata through the SQL surface, with the figures that must come out."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import kanon_duck

ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
]  # fmt: skip
ADULT_TREES = ["workclass", "marital_status", "occupation", "race", "sex", "native_country"]
ADULT_QUASI_IDENTIFIERS = (
    "['age', 'workclass', 'education_num', 'marital_status', 'occupation', 'race', 'sex', 'native_country']"
)


def load_adult(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The 30,162 complete rows of Adult, and its trees."""
    types = dict.fromkeys(ADULT_COLUMNS, "VARCHAR") | {"age": "INTEGER", "education_num": "INTEGER"}
    connection.execute(
        f"CREATE TABLE adult AS SELECT row_number() OVER () AS id, * FROM read_csv('{folder / 'adult.data'}', "
        f"header = false, delim = ', ', auto_detect = false, columns = {types}) "
        "WHERE '?' NOT IN (workclass, occupation, native_country)"
    )
    for tree in ADULT_TREES:
        connection.execute(f"CALL kanon.create_hierarchy('{tree}', levels => '{folder / f'adult_{tree}.txt'}')")


def mask(connection: duckdb.DuckDBPyConnection, view: str, options: str) -> dict[str, object]:
    """A call of create_masked_view; returns its release."""
    result = connection.execute(f"CALL kanon.create_masked_view('{view}', {options})")
    names = [column[0] for column in result.description]
    return dict(zip(names, result.fetchall()[0], strict=True))


@pytest.fixture(scope="module")
def adult(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with Adult in it."""
    path = tmp_path_factory.mktemp("adult") / "adult.db"
    with kanon_duck.connect(str(path)) as connection:
        load_adult(connection, shared_data / "adult")
        assert connection.execute("SELECT count(*) FROM adult").fetchall() == [(30_162,)]
        heights = dict(connection.execute("SELECT hierarchy, height FROM kanon.hierarchies").fetchall())
        assert heights == dict.fromkeys(ADULT_TREES, 1) | {"workclass": 2, "marital_status": 2}
    return path


@pytest.mark.parametrize(("method", "largest_loss", "seconds"), [("k_member", 0.51, 2.0), ("oka", 0.90, 4.0)])
def test_adult(adult: Path, method: str, largest_loss: float, seconds: float) -> None:
    with kanon_duck.connect(str(adult)) as connection:
        options = (
            f"source => 'adult', key => 'id', k => 5, method => '{method}', independent => true, "
            f"quasi_identifiers => {ADULT_QUASI_IDENTIFIERS}, sensitive => ['income'], seed => 1"
        )
        mask(connection, f"{method}_cold", options)
        started = time.process_time()
        release = mask(connection, f"adult_{method}", options)
        assert (
            time.process_time() - started < 2 * seconds
        )  # processor seconds of both cores: what goes on beside us counts not
        assert release["rows"] == 30_162
        assert release["k_achieved"] >= 5
        assert release["information_loss_per_row"] <= largest_loss
        quality = connection.execute(f"SELECT sum(information_loss) FROM kanon.quality('adult_{method}')").fetchall()
        assert quality == [(pytest.approx(release["information_loss"]),)]
        assert connection.execute(f"SELECT passed FROM kanon.check('adult_{method}')").fetchall() == [(True,)]
        occupations = connection.execute("SELECT count(DISTINCT occupation) FROM adult").fetchall()[0][0]
        labels = connection.execute(f"SELECT count(DISTINCT occupation) FROM adult_{method}").fetchall()[0][0]
        assert labels <= occupations + 1
    code = "import sys, duckdb; print(duckdb.connect(sys.argv[1], read_only=True).execute('SELECT count(*), avg(age_max - age_min) FROM ' + sys.argv[2]).fetchall())"
    plain = subprocess.run(
        [sys.executable, "-c", code, str(adult), f"adult_{method}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert plain.stdout.startswith("[(30162,")


def test_cup(shared_data: Path) -> None:
    """63,441 rows with a postcode hierarchy of 100,000 leaves, leading zeros kept."""
    folder = shared_data / "cup"
    with kanon_duck.connect() as connection:
        connection.execute(
            f"CREATE TABLE cup AS SELECT row_number() OVER () AS id, * FROM read_csv('{folder / 'cup.csv'}', delim = ';', all_varchar = true)"
        )
        assert connection.execute("SELECT count(*), count(*) FILTER (ZIP = '05033') > 0 FROM cup").fetchall() == [
            (63_441, True)
        ]
        started = time.process_time()
        connection.execute(f"CALL kanon.create_hierarchy('zip', levels => '{folder / 'cup_hierarchy_ZIP.csv'}')")
        assert time.process_time() - started < 6  # two cores
        for name in ("GENDER", "INCOME", "STATE"):
            connection.execute(
                f"CALL kanon.create_hierarchy('{name}', levels => '{folder / f'cup_hierarchy_{name}.csv'}')"
            )
        assert connection.execute(
            "SELECT leaves, height FROM kanon.hierarchies WHERE hierarchy = 'zip'"
        ).fetchall() == [(100_000, 5)]
        release = mask(
            connection,
            "cup_masked",
            "source => 'SELECT * REPLACE (CAST(AGE AS INTEGER) AS AGE) FROM cup', key => 'id', k => 5, "
            "quasi_identifiers => ['ZIP', 'AGE', 'GENDER', 'INCOME', 'STATE']",
        )
        assert (release["rows"], release["k_achieved"] >= 5) == (63_441, True)
        assert release["information_loss_per_row"] < 2.5
        zeros = connection.execute("SELECT count(*) FROM cup_masked WHERE ZIP LIKE '0%'").fetchall()
        assert zeros[0][0] > 0
        covered = connection.execute(
            "SELECT count(*) FROM cup_masked WHERE kanon.covers('zip', ZIP, '05033')"
        ).fetchall()
        assert covered[0][0] >= 5


def test_italia(shared_data: Path) -> None:
    """Its postcodes load; its places and ages are refused with a label and both paths; a query mends the places."""
    folder = shared_data / "italia"
    with kanon_duck.connect() as connection:
        connection.execute(
            f"CREATE TABLE italia AS FROM read_csv('{folder / 'italia.csv'}', delim = ';', all_varchar = true)"
        )
        connection.execute(
            f"CALL kanon.create_hierarchy('zip_code', levels => '{folder / 'italia_hierarchy_zip_code.csv'}')"
        )
        with pytest.raises(duckdb.Error, match="0~20"):
            connection.execute(f"CALL kanon.create_hierarchy('age', levels => '{folder / 'italia_hierarchy_age.csv'}')")
        places = folder / "italia_hierarchy_city_birth.csv"
        with pytest.raises(duckdb.Error, match="has two paths .* → .* and .* → "):
            connection.execute(f"CALL kanon.create_hierarchy('city_birth', levels => '{places}')")
        connection.execute(f"""
            CREATE TABLE places AS SELECT DISTINCT column0 AS place, column1 AS province, column2 AS region, column3 AS country
            FROM read_csv('{places}', delim = ';', header = false, all_varchar = true)
        """)
        told_apart = (
            "SELECT place || CASE WHEN count(*) OVER (PARTITION BY place) > 1 THEN '' ('' || province || '')'' ELSE '''' END, "
            "''province of '' || province, ''region '' || region, country, ''*'' FROM places"
        )
        connection.execute(f"CALL kanon.create_hierarchy('city_birth', levels => '{told_apart}')")
        release = mask(
            connection,
            "italia_masked",
            "source => 'SELECT * REPLACE (CAST(age AS INTEGER) AS age) FROM italia', key => 'ID', k => 4, "
            "quasi_identifiers => {'age': 'numeric', 'zip_code': 'zip_code'}, sensitive => ['disease']",
        )
        assert (release["rows"], release["k_achieved"] >= 4) == (100, True)
