"""Privacy models: what every equivalence class of a release must satisfy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrivacyModel:
    """The models a masked view declares; all that are set must hold.

    Attributes
    ----------
    k : int
        k-anonymity (Definition 1 of Truta & Campan 2007): each class has at least ``k`` rows; at least 2.
    """

    k: int
