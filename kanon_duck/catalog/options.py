"""The options of a masked view, and the words that some of them take: the one list that everything else follows.

It loads nothing, so that settings can be read before any kernel is. `CONTRIBUTING.md` tells where a new option has
to be named besides, and ``tests/test_options.py`` whether it is.
"""

from __future__ import annotations

OPTIONS = {
    "source": "VARCHAR",
    "key": "VARCHAR[]",
    "quasi_identifiers": "VARCHAR",
    "sensitive": "VARCHAR",
    "keep": "VARCHAR[]",
    "k": "BIGINT",
    "l": "BIGINT",
    "entropy_l": "DOUBLE",
    "recursive_cl": "VARCHAR",
    "p": "BIGINT",
    "alpha": "DOUBLE",
    "t": "DOUBLE",
    "protected": "VARCHAR",
    "method": "VARCHAR",
    "effort": "VARCHAR",
    "method_options": "VARCHAR",
    "maintenance": "VARCHAR",
    "secure": "BOOLEAN",
    "on_delete": "VARCHAR",
    "reserve": "DOUBLE",
    "patience": "BIGINT",
    "capture": "VARCHAR",
    "max_suppression": "DOUBLE",
    "weights": "VARCHAR",
    "unit": "VARCHAR",
    "seed": "BIGINT",
    "allow_unsafe_keep": "VARCHAR[]",
    "independent": "BOOLEAN",
    "derive_from": "VARCHAR",
}
"""Every option of create_masked_view and rebuild, in the order in which they are listed everywhere, and the SQL type
of its column in ``kanon_private.settings`` and ``kanon.masked_views``; what has a structure is JSON there."""

METHODS: dict[str, tuple[str, ...]] = {
    "auto": (),
    "k_member": ("next_seed",),
    "oka": (),
    "mondrian": ("relaxed",),
    "enhanced_pk": ("sensitive_weights",),
    "greedy_pk": ("sensitive_weights",),
    "incognito": (),
    "top_down": (),
    "threshold": ("delta",),
    "weighted_c_means": (),
}
"""Clustering methods, and what each takes in ``method_options``."""

FULL_DOMAIN = "incognito"
"""The method whose classes all show the same level of each quasi-identifier, so that none can change alone."""

P_SENSITIVE_METHODS = ("enhanced_pk", "greedy_pk")
"""Methods that are about p."""

EFFORT = {"light": 0.1, "medium": 1.0, "heavy": 10.0}
"""Steps of annealing per row that each word for the effort of the method auto stands for, in units of medium's."""

LONGEST_SEARCH = 86_400
"""Most seconds of effort."""

MAINTENANCE = ("incremental", "static", "append")
"""How a refresh makes classes: I3M+ and I3M-, all anew (Static I), or of the new rows alone (Static II)."""

CAPTURE = ("diff", "trigger")
"""How a refresh finds what has changed: by comparing, or by what triggers have noted."""

PATIENCE = 3
"""Releases that a person may wait for a better place in a secure masked view, unless the owner says otherwise."""

ON_DELETE = ("retire", "counterfeit", "remove")
"""What becomes of the class of a deleted person in a secure masked view."""
