"""Hierarchies: trees of generalizations over categorical values.

A hierarchy is a *tree*, given by its paths (`levels`) or its edges, or a *rule* (`prefix`, `intervals`,
`dates`), which gives every value its path and is stored as what it is. ``flat`` is always there: a tree
of height 1 over whatever values occur.
"""

from kanon_duck.hierarchy.binding import (
    FLAT,
    BoundHierarchy,
    bind,
    canonical_text,
    extended,
    height,
    in_given_order,
    remedy,
    resembling_leaves,
    root,
)
from kanon_duck.hierarchy.store import users

__all__ = [
    "FLAT",
    "BoundHierarchy",
    "bind",
    "canonical_text",
    "extended",
    "height",
    "in_given_order",
    "remedy",
    "resembling_leaves",
    "root",
    "users",
]
