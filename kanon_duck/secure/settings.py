"""What the owner of a secure series chooses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SeriesSettings:
    """How releases treat people who leave and people who wait.

    Attributes
    ----------
    on_delete : str
        ``retire``: a cohort with an empty slot is not shown until the slot is filled again, or a part of it can go;
        ``counterfeit``: an empty slot keeps its row; ``remove``: as retire, and what can go goes before it is filled.
    reserve : float
        Share of new cohorts that carry one counterfeit from the start, as a way in for newcomers.
    patience : int
        Releases that a person may wait for a better home; then any safe one is taken.
    effort : float
        Steps of annealing for each person of the pool.
    """

    on_delete: str = "retire"
    reserve: float = 0.0
    patience: int = 3
    effort: float = 600.0

    @property
    def hides(self) -> bool:
        """Whether a cohort with an empty slot is not shown; with reserve, counterfeits are part of the release."""
        return self.on_delete != "counterfeit"
