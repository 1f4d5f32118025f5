"""What releases tell together: the fast checks beside an intruder who looks at everything, and one small example of
each kind of channel."""

from __future__ import annotations

import numpy as np
import pytest

from kanon_duck.errors import KanonError
from kanon_duck.inference.bounds import LeastPossible, candidates
from kanon_duck.inference.channels import Channel, channels, vulnerable
from kanon_duck.inference.comparison import comparisons
from kanon_duck.inference.compatibility import relation
from kanon_duck.inference.conclusion import conclude, findings
from kanon_duck.inference.exact import enumerate_all
from kanon_duck.inference.series import Series, series_of_classes
from kanon_duck.inference.victim import trace_victim
from tests.measured import MOST_MISSED, Measured, measure

KINDS = ("inserts", "deletes", "updates")


@pytest.mark.parametrize("by_rows", [False, True], ids=["values", "rows"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_checks_claim_is_real_and_little_is_missed(kind: str, by_rows: bool) -> None:
    found = Measured()
    for releases in (2, 3, 5):
        for seed in range(15):
            found += measure(seed, releases, kind, by_rows=by_rows)
    print(kind, found)
    assert found.false_alarms == 0
    assert found.disclosed > 200
    assert found.missed <= MOST_MISSED * found.disclosed


def series(*releases: list[str]) -> tuple[Series, dict[str, int]]:
    """A series of releases, each a list of classes of people, each written as a name and a value: 'ann flu, bob gout'."""
    people: dict[str, int] = {}
    values: dict[str, int] = {}
    value: list[int] = []
    stays, begins = [], []
    for number, classes in enumerate(releases):
        for members in classes:
            for member in members.split(", "):
                name, held = member.split()
                if member not in people:
                    people[member] = len(value)
                    value.append(values.setdefault(held, len(values)))
                stays.append((people[member], len(begins)))
            begins.append(number)
    person, group = np.array(stays).T
    made = series_of_classes(
        len(value), len(releases), person, group, np.array(begins), np.array(begins) + 1, np.array(value)
    )
    return made, {member.split()[0]: place for member, place in people.items()}


def found(made: Series, least: int = 2, rows: bool = False) -> list[Channel]:
    """All channels of a series."""
    compared = list(comparisons(made))
    codes = None if rows else np.arange(len(made.sets.values) + 1)
    requirement = LeastPossible(None if rows else "disease", codes, least)
    listed, victims = channels(made, [requirement], compared)
    named = np.zeros(made.people, bool)
    for channel in listed:
        named[channel.people] = True
    assert (named == victims).all()
    assert (vulnerable(made, [requirement], compared) == victims).all()
    return listed


def only(made: Series, least: int = 2, rows: bool = False) -> tuple[str, list[int], int]:
    """The only channel: its kind, its victims, and how much is left."""
    [channel] = found(made, least, rows)
    return channel.kind, list(channel.people), channel.candidates


def test_a_newcomer_in_a_class_that_goes_on() -> None:
    made, people = series(["a flu, b gout"], ["a flu, b gout, c mumps"])
    assert only(made) == ("absent before", [people["c"]], 1)


def test_newcomers_in_several_classes_that_one_is_split_into() -> None:
    made, people = series(["a flu, b gout, c flu, d gout"], ["a flu, b gout", "c flu, d gout, g mumps"])
    assert only(made) == ("absent before", [people["g"]], 1)


def test_people_whose_class_is_split() -> None:
    made, people = series(["a flu, b gout"], ["a flu, c mumps", "b gout, d mumps"])
    by_kind = {(channel.kind, tuple(channel.people)) for channel in found(made)}
    assert by_kind == {
        ("in both", (people["a"],)), ("in both", (people["b"],)),
        ("absent before", (people["c"],)), ("absent before", (people["d"],)),
    }  # fmt: skip


def test_somebody_who_leaves_a_class_that_goes_on() -> None:
    made, people = series(["a flu, b gout, c mumps"], ["a flu, b gout"])
    assert only(made) == ("absent after", [people["c"]], 1)


def test_what_other_classes_leave_though_every_set_of_the_paper_is_diverse() -> None:
    made, people = series(["a flu, b gout, c flu"], ["a flu, b gout", "c flu, d gout, e mumps"])
    kind, victims, left = only(made)
    assert (kind, victims, left) == ("complement", [people["c"]], 1)


def test_what_three_releases_tell_though_no_two_do() -> None:
    made, people = series(
        ["a mumps, b flu", "c gout, d flu, e mumps, f flu"],
        ["a mumps, b flu, c gout, e mumps, g flu"],
        ["c gout, h gout, i mumps", "b flu, e mumps, g flu"],
    )
    assert only(made) == ("series", [people["c"]], 1)


def test_a_class_that_tells_by_itself() -> None:
    made, people = series(["a flu, b flu", "c flu, d gout"])
    assert only(made) == ("one release", [people["a"], people["b"]], 1)


def test_sets_of_fewer_than_k_rows() -> None:
    made, people = series(["a x, b x, c x"], ["a x, b x, c x, d x"])
    assert only(made, least=3, rows=True) == ("absent before", [people["d"]], 1)
    made, _ = series(["a x, b x, c x"], ["a x, b x, c x, d x, e x, f x"])
    assert found(made, least=3, rows=True) == []


def test_a_delete_and_an_insert_in_one_class_tell_both() -> None:
    made, people = series(["a flu, b gout, c mumps"], ["a flu, b gout, d acne"])
    kinds = {(channel.kind, tuple(channel.people)) for channel in found(made)}
    assert kinds == {("complement", (people["c"],)), ("complement", (people["d"],))}


def test_the_relations_of_classes() -> None:
    """Fig. 5 of Byun et al. 2006: the same interval, a wider one, and two that share it."""
    first = {"e_i1": [(10, 19)], "e_i2": [(20, 29)], "e_i3": [(40, 60)]}
    second = {"e_j1": [(10, 19)], "e_j2": [(20, 35)], "e_j3": [(40, 50)], "e_j4": [(51, 60)]}
    found = {(one, other): relation(first[one], second[other]) for one in first for other in second}
    assert {pair: kind for pair, kind in found.items() if kind is not None} == {
        ("e_i1", "e_j1"): "identical",
        ("e_i2", "e_j2"): "more general",
        ("e_i3", "e_j3"): "overlapping",
        ("e_i3", "e_j4"): "overlapping",
    }
    male, person, nobody = frozenset(["Male"]), frozenset(["Male", "Female"]), frozenset([None])
    assert relation([(21, 25), male], [(21, 30), person]) == "more general"
    assert relation([(21, 25), male], [(21, 30), frozenset(["Female"])]) is None
    assert relation([nobody, male], [None, male]) == "more general"
    assert relation([nobody], [(1, 2)]) is None


def test_the_exact_intruder_counts_assignments_of_rows() -> None:
    made, people = series(["a flu, b flu, c gout"], ["a flu, b flu, c gout, d gout"])
    exact = enumerate_all(made)
    a, d = exact.cell[people["a"]], exact.cell[people["d"]]
    assert exact.assignments == 3
    assert exact.cell[people["b"]] == a
    np.testing.assert_allclose(exact.expected[a] / 3, [2 / 3, 1 / 3])
    np.testing.assert_allclose(exact.expected[d], [0, 1])
    assert exact.low[a].tolist() == [2, 1]


def test_the_exact_intruder_gives_up_with_the_limit_named() -> None:
    made, people = series(["a x1, b x2, c x3, d x4, e x5, f x6"], ["a x1, b x2, c x3", "d x4, e x5, f x6"])
    with pytest.raises(KanonError, match="6 people, and the exact intruder gives up after 10 steps"):
        enumerate_all(made, np.array([people["a"]]), most_steps=10)


def test_following_a_victim_tells_what_narrowed() -> None:
    made, people = series(["a flu, b gout, c flu"], ["a flu, b gout", "c flu, d gout, e mumps"])
    titles = ["release 1", "release 2"]
    for exact in (False, True):
        first, second = trace_victim(made, people["c"], titles, exact)
        assert (first.class_rows, first.narrowed_by) == (3, "the class in release 1")
        np.testing.assert_allclose(first.probabilities, [2 / 3, 1 / 3])
        assert (second.class_rows, list(second.values)) == (3, [0])
        assert second.narrowed_by == "release 1 and release 2 compared"


def test_candidates_are_never_fewer_than_the_true_ones() -> None:
    made, _ = series(["a flu, b gout, c flu"], ["a flu, b gout", "c flu, d gout, e mumps"])
    concluded = conclude(made, map(findings, comparisons(made)))
    left = candidates(concluded.concluded, LeastPossible("disease", np.arange(3), 2))
    exact = enumerate_all(made)
    assert (left[concluded.cell] >= exact.possible().sum(axis=1)[exact.cell]).all()
