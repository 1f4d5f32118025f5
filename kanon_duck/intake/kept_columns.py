"""Refuses kept columns that could lead back to a person."""

from __future__ import annotations

from kanon_duck.catalog.settings import Settings
from kanon_duck.errors import KanonError
from kanon_duck.runtime.database import Database

RESIDUAL_ERRORS = 0.05
"""A column determines another when guessing from it leaves at most this share of the errors made without."""


def check_kept(database: Database, settings: Settings, snapshot: str) -> None:
    """Refuse kept columns that are linkable, unless the owner named them in ``allow_unsafe_keep``.

    Unsafe is a column with a value in fewer than k rows, and one that determines or is determined by a
    quasi-identifier.

    Raises
    ------
    KanonError
        With the column and the reason.
    """
    for place, name in enumerate(settings.keep):
        if name not in settings.allow_unsafe_keep:
            reason = _rare(database, snapshot, place, settings.model.k) or _linked(database, snapshot, place, settings)
            if reason:
                raise KanonError(
                    f"keep names {name}, which {reason}: make it a quasi-identifier, leave it out, "
                    f"or accept the risk with allow_unsafe_keep => ['{name}']"
                )


def as_shown(column: str) -> str:
    """SQL for a value as a reader tells it from others: what DuckDB compares as equal may be written differently.

    So are 0.0 and -0.0, a month and 30 days, and letters that a collation takes for the same.
    """
    return f"encode(CAST({column} AS VARCHAR))"


def rare_kept_values(database: Database, settings: Settings, released: str) -> list[str]:
    """What the owner should know of kept columns after the source has changed, from a relation of the released members.

    A refresh does not stop for them: the columns were judged harmless when the owner chose them.
    """
    reasons = {
        name: _rare(database, released, place, settings.model.k)
        for place, name in enumerate(settings.keep)
        if name not in settings.allow_unsafe_keep
    }
    return [
        f"{name}, which is kept, {reason}: they may lead back to people" for name, reason in reasons.items() if reason
    ]


def _rare(database: Database, rows: str, place: int, k: int) -> str | None:
    """Says whether a kept column has values in fewer than k rows of a relation."""
    rare = database.value(
        f"SELECT count(*) FROM (SELECT 1 FROM {rows} GROUP BY {as_shown(f'kept_{place}')} HAVING count(*) < {int(k)})"
    )
    return f"has {rare} values that stand in fewer than {k} rows" if rare else None


def _linked(database: Database, snapshot: str, place: int, settings: Settings) -> str | None:
    """Says whether a kept column and a quasi-identifier tell each other."""
    for other, quasi_identifier in enumerate(settings.quasi_identifiers):
        kept, quasi = as_shown(f"kept_{place}"), as_shown(f"quasi_identifier_{other}")
        if _determines(database, snapshot, kept, quasi):
            return f"determines the quasi-identifier {quasi_identifier.name}"
        if _determines(database, snapshot, quasi, kept):
            return f"is determined by the quasi-identifier {quasi_identifier.name}"
    return None


def _determines(database: Database, snapshot: str, known: str, guessed: str) -> bool:
    """Whether guessing one column from the other leaves few of the errors of always guessing the commonest.

    Values that occur once do not count, nor does a column that is constant.
    """
    without, with_known = database.rows(
        f"""
        WITH repeated AS (
            SELECT {known} AS known, {guessed} AS guessed FROM {snapshot}
            QUALIFY count(*) OVER (PARTITION BY {known}) > 1 AND count(*) OVER (PARTITION BY {guessed}) > 1
        ), pairs AS (SELECT known, guessed, count(*) AS frequency FROM repeated GROUP BY known, guessed),
        best AS (SELECT max(frequency) AS frequency FROM pairs GROUP BY known),
        commonest AS (SELECT sum(frequency) AS frequency FROM pairs GROUP BY guessed)
        SELECT (SELECT count(*) FROM repeated) - (SELECT max(frequency) FROM commonest),
               (SELECT count(*) FROM repeated) - (SELECT sum(frequency) FROM best)
        """
    )[0]
    varies = database.value(f"SELECT count(DISTINCT {known}) > 1 FROM {snapshot}")
    return bool(varies and without and with_known <= RESIDUAL_ERRORS * without)
