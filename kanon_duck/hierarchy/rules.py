"""Checks the arguments `prefix`, `intervals` and `dates` of a hierarchy, and prepares them for storage."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from kanon_duck.errors import KanonError
from kanon_duck.runtime.arguments import shown

PERIODS = ("month", "quarter", "year", "decade")
"""The periods of dates, from fine to coarse; each consists of whole periods of the kind before."""

LONGEST_PREFIX = 1000


def prefix(argument: Any) -> dict[str, Any]:
    """A hierarchy over texts of at most this many characters; each level hides one more character at the end.

    Raises
    ------
    KanonError
        When the length is not a whole number in 1..1000.
    """
    if isinstance(argument, bool) or not isinstance(argument, int) or not 1 <= argument <= LONGEST_PREFIX:
        raise KanonError(
            f"prefix: {shown(argument)} is not a whole number from 1 to {LONGEST_PREFIX}; "
            "write the length of the longest value"
        )
    return {"height": argument}


def intervals(argument: Any) -> dict[str, Any]:
    """A hierarchy over numbers; each level shows a wider interval, counted from 0.

    The widths are kept as whole numbers of their last decimal, so that intervals are exact.

    Raises
    ------
    KanonError
        When the widths are not a rising list of positive numbers, each a multiple of the one before.
    """
    if not isinstance(argument, list) or not argument:
        raise KanonError(f"intervals: {shown(argument)} is not a list of widths; write one such as [5, 10, 20]")
    widths = [_width(value) for value in argument]
    for narrow, wide in zip(widths, widths[1:], strict=False):
        if wide <= narrow or wide % narrow != 0:
            raise KanonError(
                f"intervals: width {wide:f} is not a multiple of the width {narrow:f} before it; "
                "each width must be the one before, times 2 or more"
            )
    decimals = max(max(0, -_exponent(width)) for width in widths)
    units = [int(width.scaleb(decimals)) for width in widths]
    if decimals > 15 or units[-1] >= 10**18:
        raise KanonError(f"intervals: {shown(argument)} need more than 15 decimals or 18 digits; write coarser widths")
    return {"height": len(widths) + 1, "widths": units, "decimals": decimals}


def dates(argument: Any) -> dict[str, Any]:
    """A hierarchy over dates and timestamps: the day, then the periods named.

    Raises
    ------
    KanonError
        When the periods are not some of month, quarter, year and decade, in this order.
    """
    allowed = ", ".join(f"'{period}'" for period in PERIODS)
    if not isinstance(argument, list) or not argument:
        raise KanonError(f"dates: {shown(argument)} is not a list of periods; write some of {allowed}")
    periods = [value.lower() if isinstance(value, str) else value for value in argument]
    if periods[0] == "day":  # level 0 in any case
        periods = periods[1:]
    for period in periods:
        if period not in PERIODS:
            raise KanonError(f"dates: {shown(period)} is not a period; write some of {allowed}")
    ranks = [PERIODS.index(period) for period in periods]
    if any(later <= earlier for earlier, later in zip(ranks, ranks[1:], strict=False)):
        raise KanonError(f"dates: {shown(argument)} does not rise from fine to coarse; the order is {allowed}")
    return {"height": len(periods) + 1, "periods": periods}


def _width(value: Any) -> Decimal:
    try:
        width = Decimal(str(value)).normalize()
    except InvalidOperation:
        width = Decimal("NaN")
    if isinstance(value, bool) or not width.is_finite() or width <= 0:
        raise KanonError(f"intervals: {shown(value)} is not a positive number; write widths such as [5, 10, 20]")
    return width


def _exponent(width: Decimal) -> int:
    return int(width.as_tuple().exponent)
