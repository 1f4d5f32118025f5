"""Says when it is time to cluster from scratch again."""

from __future__ import annotations

import numpy as np

from kanon_duck.catalog.views import MaskedView
from kanon_duck.encoding.microdata import NumericAttribute
from kanon_duck.kernels.box import NO_CLASS
from kanon_duck.maintenance.state import State
from kanon_duck.runtime.database import Database

MORE_LOSS = 0.1
"""Share by which loss per row may rise over that of the last clustering from scratch."""

MOST_CHANGED = 0.5
"""Share of the rows that may have come, gone or changed since then."""


def rebuild_recommended(database: Database, view: MaskedView, state: State) -> str | None:
    """Why a rebuild would be good, or None.

    Reasons are a loss per row that has drifted from that of the last clustering from scratch, that most rows have
    changed since, and values outside the domains that it fixed.
    """
    reasons = []
    base, loss, changed, rows = database.rows(
        """
        WITH history AS (FROM kanon_private.releases WHERE view_number = ?),
        scratch AS (SELECT max(release) AS release FROM history WHERE cause IN ('create', 'rebuild'))
        SELECT max(information_loss_per_row) FILTER (history.release = scratch.release),
               max_by(information_loss_per_row, history.release),
               sum(inserted + updated + deleted) FILTER (history.release > scratch.release),
               max_by(rows, history.release)
        FROM history, scratch
        """,
        [view.number],
    )[0]
    if loss > (1 + MORE_LOSS) * base:
        reasons.append(f"information loss per row has risen from {base:.4g} to {loss:.4g}")
    if changed is not None and changed > MOST_CHANGED * rows:
        reasons.append(f"{changed} rows have changed since the last clustering from scratch")
    for attribute in state.microdata.attributes:
        if isinstance(attribute, NumericAttribute):
            first, last = attribute.domain
            known = (state.labels != NO_CLASS) & ~attribute.missing
            outside = known & ((attribute.low < first) | (attribute.high > last))
            if outside.any():
                far = np.count_nonzero(outside & attribute.is_far())
                advice = f", {far} of them far outside the rest: name a domain, or correct them first" if far else ""
                reasons.append(f"{np.count_nonzero(outside)} rows of {attribute.name} lie outside its domain{advice}")
    return "; ".join(reasons) or None
