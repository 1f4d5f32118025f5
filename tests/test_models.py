"""Privacy models: the predicate of the search and the SQL of the checks, each against a slow and obvious oracle."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kanon_duck
from kanon_duck.clustering.repair import repair, unsatisfied_classes
from kanon_duck.privacy.diversity import measure
from kanon_duck.privacy.models import PrivacyModel, SensitiveAttribute
from kanon_duck.privacy.requirement import demand
from kanon_duck.privacy.sensitive import codes_of, reading
from kanon_duck.runtime.call import no_checkpoint
from kanon_duck.runtime.database import Database
from tests.encodings import Numeric, encode
from tests.people import one

PARENT = {"flu": "lung", "cold": "lung", "asthma": "lung", "melanoma": "cancer", "leukemia": "cancer", "burn": "burn"}
ILLNESSES = [*PARENT, None]


@dataclass(frozen=True)
class Patient:
    """A row: whom it is about, an illness (with a hierarchy), a number."""

    person: int
    illness: str | None
    bill: int | None


def shares(values: list[Any]) -> dict[Any, float]:
    return {value: count / len(values) for value, count in Counter(values).items()}


def counted(patients: list[Patient], name: str, by_person: bool) -> list[Any]:
    """The values that count: each row's, or each person's different ones."""
    if not by_person:
        return [getattr(patient, name) for patient in patients]
    return [value for _, value in {(patient.person, getattr(patient, name)) for patient in patients}]


def distance(values: list[Any], everything: list[Any], name: str) -> float:
    """Of Li et al. 2007: along the order for bills, along the hierarchy for illnesses."""
    inside, outside = shares(values), shares(everything)
    if name == "bill":
        ordered = sorted(outside, key=lambda value: -math.inf if value is None else value)
        if len(ordered) == 1:
            return 0.0
        running, total = 0.0, 0.0
        for value in ordered:
            running += inside.get(value, 0.0) - outside[value]
            total += abs(running)
        return total / (len(ordered) - 1)
    levels = []
    for level in (lambda value: value, lambda value: PARENT.get(value, value)):
        of_class, of_table = Counter(), Counter()
        for value, share in inside.items():
            of_class[level(value)] += share
        for value, share in outside.items():
            of_table[level(value)] += share
        levels.append(sum(max(share - of_table[value], 0.0) for value, share in of_class.items()))
    return sum(levels) / 2


def satisfied(patients: list[Patient], everybody: list[Patient], model: PrivacyModel) -> bool:
    """Whether a class may stand."""
    by_person = model.unit is not None
    size = len({patient.person for patient in patients}) if by_person else len(patients)
    if size < model.k:
        return False
    for attribute in model.attributes:
        values = counted(patients, attribute.name, by_person)
        frequencies = sorted(Counter(values).values(), reverse=True)
        strong = {PARENT.get(v, v) if PARENT.get(v, v) in attribute.protected else v for v in values}
        total = sum(frequencies)
        entropy = -sum(f / total * math.log(f / total) for f in frequencies)
        close = distance(values, counted(everybody, attribute.name, by_person), attribute.name)
        failed = [
            model.l is not None and len(frequencies) < model.l,
            model.entropy_l is not None and entropy < math.log(model.entropy_l) - 1e-9,
            model.recursive_cl is not None
            and not frequencies[0] < model.recursive_cl[0] * sum(frequencies[model.recursive_cl[1] - 1 :]),
            model.p is not None and len(strong) < model.p,
            model.alpha is not None and frequencies[0] > model.alpha * size + 1e-9,
            model.t is not None and close > model.t + 1e-9,
        ]
        if any(failed):
            return False
    return True


def attributes(protected: bool) -> tuple[SensitiveAttribute, ...]:
    return (
        SensitiveAttribute("illness", "VARCHAR", "illness", ["cancer"] if protected else []),
        SensitiveAttribute("bill", "INTEGER", None, []),
    )


@st.composite
def models(draw: st.DrawFn) -> PrivacyModel:
    maybe = lambda values: st.none() | values  # noqa: E731
    p = draw(maybe(st.integers(2, 4)))
    return PrivacyModel(
        k=draw(st.integers(2, 4)),
        l=draw(maybe(st.integers(2, 4))),
        entropy_l=draw(maybe(st.sampled_from([1.5, 2.0, 3.0]))),
        recursive_cl=draw(maybe(st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.integers(2, 3)))),
        p=p,
        alpha=draw(maybe(st.sampled_from([0.34, 0.5, 0.75]))),
        t=draw(maybe(st.sampled_from([0.1, 0.3, 0.5]))),
        attributes=attributes(p is not None and draw(st.booleans())),
        unit=draw(st.sampled_from([None, "person"])),
    )


tables = st.lists(
    st.tuples(
        st.integers(0, 3),  # class
        st.builds(Patient, st.integers(0, 9), st.sampled_from(ILLNESSES), st.none() | st.integers(-2, 3)),
    ),
    min_size=1,
    max_size=24,
)


@pytest.fixture(scope="module")
def database() -> Database:
    connection = kanon_duck.connect(":memory:")
    tree = ", ".join(f"('{leaf}', '{parent}')" for leaf, parent in PARENT.items() if leaf != parent)
    top = ", ".join(f"('{node}', '*')" for node in ("lung", "cancer", "burn"))
    connection.execute(f"CREATE TABLE tree AS FROM (VALUES {tree}, {top}) AS t(child, parent)")
    connection.execute("CALL kanon.create_hierarchy('illness', edges => 'FROM tree')")
    database = Database(connection.cursor())
    database.keeps = connection  # type: ignore[attr-defined]
    return database


# one person's two illnesses of the lungs weigh twice there, as each does alone
TWO_OF_ONE = [
    (0, Patient(0, "flu", None)),
    (0, Patient(0, "asthma", None)),
    (0, Patient(1, "flu", None)),
    (1, Patient(0, "cold", None)),
    (1, Patient(0, "melanoma", None)),
]


@settings(max_examples=40, deadline=None)
@given(table=tables, model=models())
@example(TWO_OF_ONE, PrivacyModel(k=2, t=0.3, attributes=attributes(False), unit="person"))
@example(TWO_OF_ONE, PrivacyModel(k=2, t=0.44, attributes=attributes(False), unit="person"))
def test_predicate_and_sql_agree_with_the_oracle(
    database: Database, table: list[tuple[int, Patient]], model: PrivacyModel
) -> None:
    everybody = [patient for _, patient in table]
    groups = {number: [patient for label, patient in table if label == number] for number, _ in table}
    wrong = {number for number, patients in groups.items() if not satisfied(patients, everybody, model)}

    rows = ", ".join(
        f"({number}, {patient.person}, {'NULL' if patient.illness is None else repr(patient.illness)}, "
        f"{'NULL' if patient.bill is None else patient.bill})"
        for number, patient in table
    )
    relation = f"(FROM (VALUES {rows}) AS t(class, unit_0, sensitive_0, sensitive_1))"
    database.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE made_up AS SELECT class, unit_0, CAST(sensitive_0 AS VARCHAR) AS sensitive_0, CAST(sensitive_1 AS INTEGER) AS sensitive_1 FROM {relation}"
    )

    selected, joins = reading(database, model, "made_up", "made_up")
    data = database.numpy(
        f"SELECT class, {', '.join(selected) or '1'} FROM made_up {' '.join(joins)} ORDER BY made_up.rowid"
    )
    demanded = demand(model, codes_of(model, data))
    assert set(unsatisfied_classes(np.asarray(data["class"], np.int64), demanded)) == wrong

    if model.unit is None:  # the number of rows is checked elsewhere, that of persons here
        wrong = {number for number in groups if not satisfied(groups[number], everybody, replace(model, k=1))}
    measures = measure(database, model, "made_up", ["class"])
    assert all(each.passed for each in measures) == (not wrong)
    for each in measures:
        if each.requirement == "t":
            name = str(each.attribute)
            by_person = model.unit is not None
            all_values = counted(everybody, name, by_person)
            greatest = max(distance(counted(group, name, by_person), all_values, name) for group in groups.values())
            assert each.achieved == pytest.approx(greatest)
    assert max((each.violating_rows for each in measures), default=0) <= sum(len(groups[number]) for number in wrong)


@settings(max_examples=30, deadline=None)
@given(table=tables, model=models(), numbers=st.lists(st.integers(0, 20), min_size=24, max_size=24))
def test_repair_leaves_no_class_below_the_models(
    database: Database, table: list[tuple[int, Patient]], model: PrivacyModel, numbers: list[int]
) -> None:
    """Every class satisfies what is demanded, or no row is in a class because not even all rows together do."""
    labels = np.array([label for label, _ in table])
    values = {name: [getattr(patient, name) for _, patient in table] for name in ("person", "illness", "bill")}
    data = {"class": labels} | {
        f"{role}{place}": np.array([hash((str(value), role)) for value in values[name]], np.int64).view(np.uint64)
        for place, name in enumerate(("illness", "bill"))
        for role in ("value_", "strong_", f"level_{place}_")
    }
    plain = PrivacyModel(
        model.k, model.l, model.entropy_l, model.recursive_cl, model.p, model.alpha, None, attributes(False)
    )
    demanded = demand(plain, codes_of(plain, data))
    encoding = encode([(number,) for number in numbers[: len(table)]], [Numeric(0, 20)])
    repaired = repair(encoding, labels, demanded, no_checkpoint)
    assert len(unsatisfied_classes(repaired, demanded)) == 0
    everybody = [patient for _, patient in table]
    assert (repaired.min() >= 0) == (len(table) >= plain.k and satisfied(everybody, everybody, plain))


HOSPITAL = """
CREATE TABLE visits AS
SELECT i AS id, CAST(hash(i) % 60 AS INTEGER) AS age, 'c' || hash(i, 1) % 9 AS city, i // 2 AS person,
       CASE WHEN hash(i, 2) % 3 < 2 THEN 'flu' WHEN hash(i, 2) % 31 = 5 THEN NULL ELSE 'd' || hash(i, 3) % 6 END AS disease,
       CAST(hash(i, 4) % 900 AS INTEGER) AS bill
FROM range(400) AS r(i)
"""

OPTIONS = {
    "l": "l => 3",
    "entropy_l": "entropy_l => 2.5",
    "recursive_cl": "recursive_cl => [2.5, 2]",
    "p": "p => 3",
    "alpha": "alpha => 0.7",
    "t": "t => 0.25",
    "unit": "unit => 'person', l => 2",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_view_keeps_its_model_through_refreshes(connection: duckdb.DuckDBPyConnection, option: str) -> None:
    connection.execute(HOSPITAL)
    release = one(
        connection,
        "CALL kanon.create_masked_view('v', source => 'visits', key => 'id', quasi_identifiers => ['age', 'city'], "
        f"sensitive => ['disease', 'bill'], k => 4, secure => false, effort => 'light', {OPTIONS[option]})",
    )
    assert not any("without l, p, alpha or t" in warning for warning in release["warnings"])
    for change in (
        "DELETE FROM visits WHERE hash(id, 9) % 9 = 0",
        "UPDATE visits SET disease = 'd' || id % 4 WHERE hash(id, 10) % 9 = 0",
        "INSERT INTO visits SELECT id + 1000, age, city, person + 1000, disease, bill FROM visits WHERE hash(id, 11) % 5 = 0",
    ):
        connection.execute(change)
        assert one(connection, "CALL kanon.refresh('v')")["cause"] == "refresh"
        checks = connection.execute("SELECT requirement, passed FROM kanon.check('v')").fetchall()
        assert option in {requirement for requirement, _ in checks} or option == "unit"
        assert all(passed for _, passed in checks)
        assert (
            connection.execute("SELECT count(*) FROM v").fetchall()
            == connection.execute("SELECT count(*) FROM visits").fetchall()
        )
    assert one(connection, "CALL kanon.optimize('v')")["release"] >= 4
    assert one(connection, "CALL kanon.rebuild('v', k => 5)")["k_achieved"] >= 5
    assert all(passed for (passed,) in connection.execute("SELECT passed FROM kanon.check('v')").fetchall())


IMPOSSIBLE = {
    "l => 9": "l is 9, but disease has only 8 different values: the largest possible l is 8",
    "p => 9": "p is 9, but disease has only 8 different values",
    "alpha => 0.5": "alpha is 0.5, but one value of disease has a frequency of 0.6",
    "entropy_l => 6": "entropy_l is 6.0, but the entropy of disease is only that of",
    "recursive_cl => [0.5, 2]": "recursive_cl is .*c must be above",
    "unit => 'person', k => 300": "k is 300, but there are only 200 persons: the largest possible k is 200",
    "l => 1": "l is 1: it must be at least 2",
    "alpha => 1.5": "alpha is 1.5: it must be at most 1",
    "t => 0": "t is 0: it must be a number above 0",
    "recursive_cl => [2]": "give c and l",
    "p => 2, protected => {'disease': ['x']}": "protected names disease, which has no hierarchy",
    "unit => 'age'": "unit names age, which quasi_identifiers names already",
}


@pytest.mark.parametrize("option", IMPOSSIBLE)
def test_what_cannot_be_is_refused_before_any_work(connection: duckdb.DuckDBPyConnection, option: str) -> None:
    connection.execute(HOSPITAL)
    k = "" if "k =>" in option else ", k => 4"
    with pytest.raises(duckdb.Error, match=IMPOSSIBLE[option]):
        connection.execute(
            "CALL kanon.create_masked_view('v', source => 'visits', key => 'id', quasi_identifiers => ['age', 'city'], "
            f"sensitive => ['disease'], secure => false, {option}{k})"
        )
    assert connection.execute("FROM kanon.masked_views").fetchall() == []


@pytest.mark.surface
def test_protected_values_count_as_their_node(connection: duckdb.DuckDBPyConnection) -> None:
    """Truta, Campan & Meyer 2007, section 2: two kinds of cancer are one strong value."""
    connection.execute(
        "CREATE TABLE tree AS FROM (VALUES ('a', 'cancer'), ('b', 'cancer'), ('flu', 'other'), ('cancer', '*'), ('other', '*')) AS t(c, p)"
    )
    connection.execute("CALL kanon.create_hierarchy('icd', edges => 'FROM tree')")
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, i AS age, ['a', 'b', 'a', 'flu'][1 + i % 4] AS d FROM range(16) AS r(i)"
    )
    mask = "CALL kanon.create_masked_view('v', source => 't', key => 'id', quasi_identifiers => ['age'], k => 2, p => {p}, sensitive => {{'d': 'icd'}}, protected => {{'d': ['cancer']}}, secure => false)"
    with pytest.raises(duckdb.Error, match="p is 3, but d has only 2 different values to tell apart"):
        connection.execute(mask.format(p=3))
    connection.execute(mask.format(p=2))
    assert connection.execute(
        "SELECT min(n) FROM (SELECT count(DISTINCT d = 'flu') AS n FROM v GROUP BY age)"
    ).fetchall() == [(2,)]
    assert ("p", "d", 2.0) in connection.execute(
        "SELECT requirement, attribute, achieved FROM kanon.check('v')"
    ).fetchall()
    for node, told in (("*", "names the root"), ("cancr", "did you mean cancer")):
        with pytest.raises(duckdb.Error, match=told):
            connection.execute(mask.format(p=2).replace("['cancer']", f"['{node}']").replace("'v'", "'w'"))


@pytest.mark.surface
def test_persons_are_counted_not_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Three rows of one person beside one of another are two persons."""
    connection.execute(
        "CREATE TABLE t AS FROM (VALUES (1, 20, 'A', 'flu'), (2, 20, 'A', 'flu'), (3, 20, 'A', 'flu'), (4, 20, 'B', 'cold'), (5, 70, 'C', 'flu'), (6, 71, 'D', 'cold'), (7, 71, 'D', 'cold')) AS t(id, age, person, illness)"
    )
    mask = "CALL kanon.create_masked_view('{}', source => 't', key => 'id', quasi_identifiers => ['age'], k => {}, unit => 'person', independent => true, secure => false)"
    with pytest.raises(duckdb.Error, match="only 4 persons: the largest possible k is 4"):
        connection.execute(mask.format("v", 5))
    assert one(connection, mask.format("v", 2))["classes"] == 2
    assert one(connection, mask.format("w", 3))["classes"] == 1
    assert connection.execute("SELECT requirement, achieved, passed FROM kanon.check('w')").fetchall() == [
        ("k", 4.0, True)
    ]
    release = one(connection, mask.format("x", 2).replace("unit =>", "sensitive => ['illness'], alpha => 0.5, unit =>"))
    assert (release["k_achieved"], release["l_achieved"], release["max_frequency"]) == (2, 2, 0.5)


@pytest.mark.surface
@pytest.mark.parametrize("max_suppression", [0.0, 0.2])
@pytest.mark.parametrize("maintenance", ["incremental", "static", "append"])
def test_values_that_drift_away_are_held_back(
    connection: duckdb.DuckDBPyConnection, maintenance: str, max_suppression: float
) -> None:
    """Where no classes of the rows that are left satisfy the models, the last release stays."""
    connection.execute(HOSPITAL)
    connection.execute(
        "CALL kanon.create_masked_view('v', source => 'visits', key => 'id', quasi_identifiers => ['age', 'city'], sensitive => ['disease'], k => 4, l => 3, secure => false, "
        f"maintenance => '{maintenance}', max_suppression => {max_suppression})"
    )
    connection.execute("UPDATE visits SET disease = 'flu'")
    held = one(connection, "CALL kanon.refresh('v')")
    assert held["cause"] == "held"
    assert "make no class that satisfies the models: release 1 stays" in held["warnings"][0]
    assert all(passed for (passed,) in connection.execute("SELECT passed FROM kanon.check('v')").fetchall())
    connection.execute("UPDATE visits SET disease = 'd' || id % 5")
    assert one(connection, "CALL kanon.refresh('v')")["cause"] == "refresh"
    connection.execute("DELETE FROM visits WHERE disease <> 'd1'")
    assert one(connection, "CALL kanon.refresh('v')")["cause"] == "held"


@pytest.mark.surface
def test_what_an_unknown_value_counts_as_is_never_guessed(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE tree AS FROM (VALUES ('a', 'grave'), ('b', 'grave'), ('flu', '*'), ('grave', '*')) AS t(c, p)"
    )
    connection.execute("CALL kanon.create_hierarchy('icd', edges => 'FROM tree')")
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, i AS age, ['a', 'b', 'a', 'flu'][1 + i % 4] AS d FROM range(24) AS r(i)"
    )
    connection.execute(
        "CALL kanon.create_masked_view('v', source => 't', key => 'id', quasi_identifiers => ['age'], k => 2, p => 2, "
        "sensitive => {'d': 'icd'}, protected => {'d': ['grave']}, secure => false, effort => 'light')"
    )
    connection.execute("UPDATE t SET d = 'gout' WHERE id = 3")
    told = "sensitive.d holds 'gout', without a leaf in hierarchy icd: extend the hierarchy or correct the source"
    with pytest.raises(duckdb.Error, match=re.escape(told)):
        connection.execute("CALL kanon.refresh('v')")
    assert connection.execute("SELECT status, reason FROM kanon.masked_views").fetchall() == [("broken", told)]
    connection.execute("CALL kanon.extend_hierarchy('icd', edges => 'SELECT ''gout'', ''grave''')")
    assert one(connection, "CALL kanon.refresh('v')")["cause"] == "refresh"
    assert all(passed for (passed,) in connection.execute("SELECT passed FROM kanon.check('v')").fetchall())


@pytest.mark.surface
def test_a_rebuild_takes_models_off_and_forgets_what_belongs_to_another_method(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute(HOSPITAL)
    connection.execute(
        "CALL kanon.create_masked_view('v', source => 'visits', key => 'id', quasi_identifiers => ['age'], k => 3, l => 2, "
        "sensitive => ['disease'], secure => false, effort => 'light')"
    )
    connection.execute("CALL kanon.rebuild('v', l => false, method => 'mondrian')")
    assert connection.execute("SELECT l, method, effort FROM kanon.masked_views").fetchall() == [
        (None, "mondrian", "medium")
    ]
    assert connection.execute("SELECT requirement FROM kanon.check('v')").fetchall() == [("k",)]
