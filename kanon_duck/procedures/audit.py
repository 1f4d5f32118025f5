"""FROM kanon.audit: what a series of released tables reveals, whatever tool made them."""

from __future__ import annotations

from kanon_duck.inference.audited import read_released, requirements
from kanon_duck.inference.channels import channels
from kanon_duck.inference.comparison import comparisons
from kanon_duck.inference.rows import channel_rows
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """One row for each channel."""
    series, names, codes = read_released(call)
    required = requirements(call, codes)
    call.phase("comparing")
    found, _ = channels(series, required, comparisons(series, checkpoint=call.checkpoint))
    return channel_rows(series, names, found)
