"""FROM kanon.inference_channels: what the releases of masked views reveal together."""

from __future__ import annotations

from kanon_duck.inference.channels import channels
from kanon_duck.inference.comparison import comparisons
from kanon_duck.inference.rows import channel_rows
from kanon_duck.inference.views import read_views
from kanon_duck.runtime import arguments as read
from kanon_duck.runtime.call import Call, Row


def run(call: Call) -> list[Row]:
    """One row for each channel of one masked view, or of several over one source as one series."""
    names = read.names(call.arguments, "view_name")
    call.phase("reading")
    series, written, required = read_views(call, names)
    call.phase("comparing")
    found, _ = channels(series, required, comparisons(series, checkpoint=call.checkpoint))
    return channel_rows(series, written, found)
