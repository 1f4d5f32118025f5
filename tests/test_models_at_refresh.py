"""Limits and models that speak of the whole release, kept refresh by refresh; what the check refuses is told."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from kanon_duck.errors import RefusedReleaseError
from kanon_duck.maintenance import next_release, secure_refresh
from kanon_duck.secure.certificates import UncertifiedError
from tests.people import one

PEOPLE = """
CREATE TABLE people AS
SELECT i AS id, CAST(hash(i) % 60 AS INTEGER) AS age, CAST(hash(i, 1) % 12 AS VARCHAR) AS city,
       CASE WHEN hash(i, 2) % 3 = 0 THEN 'flu' WHEN hash(i, 2) % 9 = 1 THEN 'cancer' ELSE 'cold' END AS disease,
       CAST(hash(i, 2) % 40 + hash(i, 3) % 9 AS INTEGER) AS days
FROM range({}) AS r(i)
"""

MASK = """
CALL kanon.create_masked_view('masked', source => 'people', key => 'id', k => 4, secure => false,
     quasi_identifiers => {{'age': 'numeric', 'city': 'flat'}}, sensitive => ['{}'], {})
"""


def masked(connection: duckdb.DuckDBPyConnection, rows: int, sensitive: str, options: str) -> dict[str, Any]:
    """People and their masked view; returns release 1."""
    connection.execute(PEOPLE.format(rows))
    return one(connection, MASK.format(sensitive, options))


def status(connection: duckdb.DuckDBPyConnection) -> tuple[str, str | None]:
    return connection.execute("SELECT status, reason FROM kanon.masked_views").fetchall()[0]


def assert_within(connection: duckdb.DuckDBPyConnection, answer: dict[str, Any], share: float) -> None:
    """The release satisfies its models, and no more people are left out than its limit allows."""
    assert status(connection) == ("current", None)
    assert connection.execute("SELECT bool_and(passed) FROM kanon.check('masked')").fetchone() == (True,)
    [(people,)] = connection.execute("SELECT count(*) FROM people").fetchall()
    assert answer["suppressed"] <= share * people
    assert answer["rows"] + answer["suppressed"] + answer["waiting"] == people


@pytest.mark.parametrize("sensitive", ["disease", "days"])
@pytest.mark.parametrize("maintenance", ["incremental", "append", "static"])
@pytest.mark.parametrize("method", ["auto", "k_member"])
def test_distances_are_to_those_who_are_released(
    connection: duckdb.DuckDBPyConnection, method: str, maintenance: str, sensitive: str
) -> None:
    """Those left out, those gone and those waiting have no part in what t-closeness compares with."""
    options = f"t => 0.3, max_suppression => 0.2, method => '{method}', maintenance => '{maintenance}'"
    assert masked(connection, 150, sensitive, options)["suppressed"] > 0
    for round_of_changes in range(6):
        connection.execute(f"DELETE FROM people WHERE hash(id, {round_of_changes}) % 30 < 2")
        if round_of_changes % 2:
            connection.execute(
                f"INSERT INTO people SELECT 1000 * {round_of_changes} + i, 3 * i, 'new', 'new', 60 + i FROM range(7) AS r(i)"
            )
        answer = one(connection, "CALL kanon.refresh('masked')")
        assert answer["cause"] in ("refresh", "unchanged")
        assert_within(connection, answer, 0.2)
        assert "classes could not be kept: all rows were clustered from scratch" not in answer["warnings"]


@pytest.mark.parametrize("model", ["k => 4", "l => 2", "t => 0.4", "l => 3"])
def test_append_and_optimize_keep_the_limit_and_lower_the_loss(
    connection: duckdb.DuckDBPyConnection, model: str
) -> None:
    options = f"max_suppression => 0.05, maintenance => 'append'{'' if model[0] == 'k' else ', ' + model}"
    masked(connection, 160, "disease", options)
    for round_of_changes in range(8):
        connection.execute(f"DELETE FROM people WHERE hash(id, {round_of_changes}) % 12 = 0")
        connection.execute(
            f"INSERT INTO people SELECT 1000 * {round_of_changes + 1} + i, i * 5 % 60, (i % 12)::VARCHAR, 'cold', 3 "
            f"FROM range({(0, 3, 9, 14)[round_of_changes % 4]}) AS r(i)"
        )
        before = one(connection, "CALL kanon.refresh('masked')")
        assert_within(connection, before, 0.05)
        after = one(connection, "CALL kanon.optimize('masked')")
        assert_within(connection, after, 0.05)
        if after["cause"] == "unchanged":
            assert after["release"] == before["release"]
        else:
            assert after["information_loss"] < before["information_loss"]


def test_what_the_check_refuses_is_clustered_from_scratch(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked(connection, 60, "disease", "l => 2")
    connection.execute("DELETE FROM people WHERE id < 5")
    make_current, refusals = (
        next_release.make_changes_current,
        [RefusedReleaseError("the release would have a class of 1")],
    )

    def refuse_first(*arguments: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return make_current(*arguments)

    monkeypatch.setattr(next_release, "make_changes_current", refuse_first)
    answer = one(connection, "CALL kanon.refresh('masked')")
    assert (answer["cause"], answer["rows"], answer["release"]) == ("refresh", 55, 2)
    assert "classes could not be kept: all rows were clustered from scratch" in answer["warnings"]
    assert_within(connection, answer, 0.0)


def test_a_view_whose_release_is_refused_is_not_current(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked(connection, 60, "disease", "l => 2")
    shown = connection.execute("FROM masked").fetchall()
    connection.execute("DELETE FROM people WHERE id < 5")

    def refuse(*_: Any) -> None:
        raise RefusedReleaseError("the release would have a class of 1")

    with monkeypatch.context() as patched:
        patched.setattr(next_release, "make_changes_current", refuse)
        with pytest.raises(duckdb.Error, match=r"dry_run|would have a class of 1"):
            connection.execute("CALL kanon.refresh('masked', dry_run => true)").fetchall()
        assert status(connection) == ("current", None)
        with pytest.raises(duckdb.Error, match=r"would have a class of 1 \(release 1 stays as it is\)"):
            connection.execute("CALL kanon.refresh('masked')").fetchall()
    assert status(connection) == ("stale", "the release would have a class of 1")
    assert connection.execute("FROM masked").fetchall() == shown
    assert_within(connection, one(connection, "CALL kanon.refresh('masked')"), 0.0)


def test_a_secure_release_without_certificates_leaves_the_view_stale(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(PEOPLE.format(60))
    connection.execute(MASK.replace("secure => false,", "").format("disease", "l => 2"))
    connection.execute("INSERT INTO people SELECT 100 + i, 20 + i, '1', 'new' || i % 3, 3 FROM range(12) AS r(i)")

    def refuse(*_: Any, **__: Any) -> None:
        raise UncertifiedError("1 cohorts have people without a certificate")

    with monkeypatch.context() as patched:
        patched.setattr(secure_refresh, "continue_series", refuse)
        with pytest.raises(duckdb.Error, match=r"without a certificate \(release 1 stays as it is\)"):
            connection.execute("CALL kanon.refresh('masked')").fetchall()
    assert status(connection) == ("stale", "1 cohorts have people without a certificate")
    assert one(connection, "CALL kanon.refresh('masked')")["release"] == 2
    assert status(connection) == ("current", None)
