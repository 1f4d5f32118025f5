"""Names of the tables of a masked view: private tables by its number, tables that readers see by its name."""

from __future__ import annotations

from sqlglot import exp


def members_table(view_number: int) -> str:
    """Private table of the people of a masked view: their columns by role and number, and their class."""
    return f"kanon_private.members_{view_number}"


def classes_table(view_number: int) -> str:
    """Private table of the classes of a masked view and their released cells."""
    return f"kanon_private.classes_{view_number}"


def diversity_table(view_number: int) -> str:
    """Private table of how diverse each sensitive attribute is in each class that a reader sees."""
    return f"kanon_private.diversity_{view_number}"


def values_table(view_number: int) -> str:
    """Private table of the categorical values that have leaf numbers in the members."""
    return f"kanon_private.values_{view_number}"


def changes_table(view_number: int) -> str:
    """Private table in which triggers note the keys of changed rows."""
    return f"kanon_private.changes_{view_number}"


def retired_table(view_number: int) -> str:
    """Private table of all rows that a dropped masked view has released."""
    return f"kanon_private.retired_{view_number}"


def stays_table(view_number: int) -> str:
    """Private table of who was in which version of a class, for versions that have ended."""
    return f"kanon_private.stays_{view_number}"


def versions_table(view_number: int) -> str:
    """Private table of versions of classes that have ended: their cells, and the releases that showed them."""
    return f"kanon_private.versions_{view_number}"


def vulnerable_table(view_number: int) -> str:
    """Private table of people whom the releases so far tell too much of."""
    return f"kanon_private.vulnerable_{view_number}"


def slots_table(view_number: int) -> str:
    """Private table of the slots of a secure masked view: places in classes, each with a fixed value."""
    return f"kanon_private.slots_{view_number}"


def cohorts_table(view_number: int) -> str:
    """Private table of the cohorts of a secure masked view: slots that are shown together or not at all."""
    return f"kanon_private.cohorts_{view_number}"


def unions_table(view_number: int) -> str:
    """Private table of which union of cohorts each slot belongs to, in a masked view that is derived from another."""
    return f"kanon_private.unions_{view_number}"


def people_table(view_number: int) -> str:
    """Private table of everybody who has ever been in a release of a secure masked view, or waits for one."""
    return f"kanon_private.people_{view_number}"


def tuples_table(view_number: int) -> str:
    """Private table of what the values of slots stand for: tuples of sensitive and kept values."""
    return f"kanon_private.tuples_{view_number}"


def series_table(view_number: int) -> str:
    """Private table of what a secure series was begun with; one row."""
    return f"kanon_private.series_{view_number}"


def former_table(view_number: int) -> str:
    """Private table of codes that cohorts once held, as far as these still widen what readers see of a class."""
    return f"kanon_private.former_{view_number}"


def history_table(name: str) -> exp.Table:
    """Rows of earlier releases that the current one no longer has, with the releases they were in."""
    return exp.table_(name, db="kanon_history", quoted=True)


def history_classes_table(name: str) -> exp.Table:
    """The cells of the classes of these rows."""
    return exp.table_(name, db="kanon_history_classes", quoted=True)


def released_table(name: str) -> exp.Table:
    """The table of the current release, which the masked view shows."""
    return exp.table_(name, db="kanon_released", quoted=True)
