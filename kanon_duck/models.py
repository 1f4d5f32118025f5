"""Privacy models: what every equivalence class of a release must satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from kanon_duck.errors import KanonError


@dataclass(frozen=True)
class PrivacyModel:
    """The models a masked view declares; all that are set must hold.

    Attributes
    ----------
    k : int
        k-anonymity (Definition 1 of Truta & Campan 2007): each class has at least ``k`` rows; at least 2.
    """

    k: int

    def refuse_too_few(self, rows: int) -> None:
        """Refuse a table that has no partition into classes of k rows.

        Raises
        ------
        KanonError
            When there are fewer than k rows, with the largest k that is possible.
        """
        if rows < self.k:
            largest = f"the largest possible k is {rows}" if rows >= 2 else "at least 2 rows are needed"
            raise KanonError(f"k is {self.k}, but there are only {rows} rows: {largest}")
