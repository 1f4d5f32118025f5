"""I3M+, I3M- and IL_Optimization as Figures 1 to 3 of Truta & Campan 2007 read, slowly, on plain values;
and the exchange of rows that goes beyond them.

Ties go to the lowest number of a class or row. What the figures leave open is settled as the package
settles it: empty classes are dropped before dispersing, splits repeat until every part is below 2k.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from tests import oracle
from tests.encodings import QuasiIdentifier, Tree, heights

Cells = tuple[Any, ...]


class LiteralPartition:
    """Classes by number, each a set of rows."""

    def __init__(
        self, rows: oracle.Rows, quasi_identifiers: Sequence[QuasiIdentifier], labels: Sequence[int], k: int
    ) -> None:
        self.rows, self.quasi_identifiers, self.k = rows, quasi_identifiers, k
        self.classes: dict[int, frozenset[int]] = {
            label: frozenset(row for row, other in enumerate(labels) if other == label)
            for label in sorted(set(labels) - {-1})
        }
        self.next_number = max(labels, default=-1) + 1
        self.losses: dict[frozenset[int], Fraction] = {frozenset(): Fraction(0)}

    def labels(self) -> list[int]:
        """Class of each row, -1 for one in none."""
        labels = [-1] * len(self.rows)
        for number, members in self.classes.items():
            for row in members:
                labels[row] = number
        return labels

    def loss(self, members: frozenset[int]) -> Fraction:
        """IL(cl)."""
        if members not in self.losses:
            values = [self.rows[row] for row in members]
            self.losses[members] = len(members) * oracle.loss_per_row(values, self.quasi_identifiers)
        return self.losses[members]

    def total_loss(self) -> Fraction:
        """IL(S)."""
        return sum((self.loss(members) for members in self.classes.values()), Fraction(0))

    def insert(self, rows: Iterable[int]) -> None:
        """I3M+."""
        for row in rows:
            self.place(row)

    def delete(self, rows: Iterable[int]) -> None:
        """I3M-."""
        for number in self.take_out(rows):
            if number not in self.classes:
                continue
            if len(self.classes[number]) < self.k:
                for row in sorted(self.classes.pop(number)):
                    self.place(row)
            else:
                self.split(number)

    def take_out(self, rows: Iterable[int]) -> list[int]:
        """Take rows out of their classes, which are returned; those that have none left are dropped."""
        gone = set(rows)
        touched = [number for number in sorted(self.classes) if self.classes[number] & gone]
        for number in touched:
            self.classes[number] -= gone
            if not self.classes[number]:
                del self.classes[number]
        return touched

    def exchange(self, leaving: Iterable[int], arriving: Iterable[int]) -> None:
        """Take rows out, place others, then give up classes that are too small, whole or row by row."""
        touched = self.take_out(leaving)
        self.insert(arriving)
        for number in touched:
            if number not in self.classes:
                continue
            if len(self.classes[number]) >= self.k:
                self.split(number)
                continue
            rows = sorted(self.classes.pop(number))
            hosts = [self.best(row) for row in rows] if self.classes else []
            rises = [self.rise_together(host, rows) for host in hosts]
            apart = sum(
                self.loss(self.classes[host] | {row}) - self.loss(self.classes[host])
                for host, row in zip(hosts, rows, strict=False)
            )
            if hosts and min(rises) <= apart:
                host = hosts[rises.index(min(rises))]
                self.classes[host] |= set(rows)
                self.split(host)
            else:
                for row in rows:
                    self.place(row)

    def rise_together(self, number: int, rows: list[int]) -> Fraction:
        """How much total loss rises when rows join a class, which is divided once if it can be."""
        old = self.classes[number] | set(rows)
        new = self.leaving(old) if len(old) >= 2 * self.k else frozenset()
        return self.loss(old - new) + self.loss(new) - self.loss(self.classes[number])

    def place(self, row: int) -> None:
        """FindBestCluster and what follows it in both figures."""
        if self.classes:
            best = self.best(row)
            self.classes[best] |= {row}
            self.split(best)

    def best(self, row: int) -> int:
        """FindBestCluster."""
        return min(
            sorted(self.classes),
            key=lambda number: self.loss(self.classes[number] | {row}) - self.loss(self.classes[number]),
        )

    def split(self, number: int) -> None:
        """Split2kCluster, as long as there are 2k rows."""
        while len(self.classes[number]) >= 2 * self.k:
            new = self.leaving(self.classes[number])
            self.classes[number] -= new
            self.classes[self.next_number] = new
            self.next_number += 1

    def leaving(self, members: frozenset[int]) -> frozenset[int]:
        """The k rows of a class that Split2kCluster makes a new one of."""
        new: frozenset[int] = frozenset()
        while len(new) < self.k:
            old = members - new
            new |= {min(sorted(old), key=lambda row: self.loss(old - {row}) + self.loss(new | {row}))}
        return new

    def split_large(self) -> None:
        """Split2kCluster for every class."""
        for number in sorted(self.classes):
            self.split(number)

    def generalization(self, members: Iterable[int]) -> Cells:
        """gen(cl), with one value for all that readers see as the whole domain."""
        cells: list[Any] = []
        for attribute, quasi_identifier in enumerate(self.quasi_identifiers):
            values = [self.rows[row][attribute] for row in members]
            if oracle.share(values, quasi_identifier) == 1:
                cells.append("*")
            elif values[0] is None:
                cells.append(None)
            elif isinstance(quasi_identifier, Tree):
                cells.append(oracle.lowest_common_ancestor(values, quasi_identifier))
                assert cells[-1] in heights(quasi_identifier)
            else:
                cells.append((min(values), max(values)))
        return tuple(cells)

    def covers(self, number: int, row: int) -> bool:
        """Definition 6."""
        members = self.classes[number]
        return row not in members and self.generalization(members) == self.generalization([*members, row])

    def optimal_break(self, number: int) -> dict[int, frozenset[int]] | None:
        """ComputeOptimalBreak; None for a class that is not totally covered."""
        result = {other: members for other, members in self.classes.items() if other != number}
        for row in sorted(self.classes[number]):
            covering = [other for other in sorted(result) if self.covers(other, row)]
            if not covering:
                return None
            host = min(covering, key=lambda other: self.loss(result[other]) / len(result[other]))
            result[host] |= {row}
        return result

    def optimize(self) -> None:
        """IL_Optimization."""
        covered = [number for number in sorted(self.classes) if self.optimal_break(number) is not None]
        for number in sorted(covered, key=lambda number: -self.loss(self.classes[number])):
            result = self.optimal_break(number)
            if result is not None and sum(map(self.loss, result.values())) < self.total_loss():
                self.classes = result
