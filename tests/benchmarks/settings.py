"""How the constants of `auto` were chosen: each one varied alone around its present value.

    python -m tests.benchmarks.settings OUTPUT

writes ``settings.md`` to the folder OUTPUT: for each constant and value the loss relative to that of the present
settings, its spread over seeds, and the processor time. Only the choosing half of the tables is looked at
(see ``tables``), at medium effort. Constants inside kernels are left out, because a kernel is compiled with
them; so are those that change nothing at this effort and these k.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.auto import auto
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.runtime.call import no_checkpoint
from tests.benchmarks.tables import CHOOSING, QUALITY_K, data_folder, encoded, loss_per_row, open_table

VALUES: dict[str, list[float]] = {
    "order.CURVE_PRICE": [1, 2, 3, 6, 8, 16],
    "anneal.WINDOW": [1 << 9, 1 << 10, 1 << 12, 1 << 13],
    "anneal.REACH": [8, 12, 24, 32],
    "anneal.FEWEST_NEIGHBOURS": [4, 16],
    "anneal.COLD": [0.01, 0.02, 0.045, 0.06],
    "anneal.HOTTEST": [0.3, 0.45, 0.8, 1.2],
    "anneal.HOT_AT_TEN_STEPS": [0.075, 0.1, 0.2, 0.3],
    "anneal.TWO_ROUNDS": [25, 200],
}
"""The constants, by module, and the values tried beside the present one."""

SEEDS = 3


@contextmanager
def set_to(constant: str, value: float) -> Iterator[None]:
    """Give a constant of ``kanon_duck.clustering`` another value for a while."""
    module_name, name = constant.split(".")
    module = resolve_name(f"kanon_duck.clustering.{module_name}")
    present = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, present)


def present_value(constant: str) -> float:
    """The value a constant has."""
    return resolve_name(f"kanon_duck.clustering.{constant}")


def measure(tables: list[Microdata]) -> tuple[NDArray[np.float64], float]:
    """Loss per row of every seed (rows) on every table at every k (columns), and processor seconds."""
    losses = np.empty((SEEDS, len(tables), len(QUALITY_K)))
    seconds = 0.0
    for at in np.ndindex(losses.shape):
        seed, microdata, model = at[0], tables[at[1]], PrivacyModel(QUALITY_K[at[2]])
        started = time.process_time()
        labels = auto(microdata, model, np.random.default_rng(seed), no_checkpoint)
        seconds += time.process_time() - started
        losses[at] = loss_per_row(microdata, labels)
    return losses.reshape(SEEDS, -1), seconds


def line(name: str, value: str, losses: NDArray[np.float64], present: NDArray[np.float64], seconds: float) -> str:
    """A line of the table: mean ratio and its spread over seeds, then the mean ratio on each table."""
    ratios = losses / present.mean(axis=0)
    of_table = ratios.reshape(SEEDS, len(CHOOSING), -1).mean(axis=(0, 2))
    cells = [f"{ratio:.4f}" for ratio in (ratios.mean(), ratios.mean(axis=1).std(ddof=1), *of_table)]
    return f"| {name} | {value} | {' | '.join(cells)} | {seconds:.2f} |"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    folder = data_folder()
    if folder is None:
        parser.error("KANON_DUCK_DATA is not set: it names the folder of the real data sets")
    tables = []
    for table in CHOOSING:
        with open_table(table, folder) as connection:
            tables.append(encoded(connection, table.name, table.quasi_identifiers).microdata)
    measure(tables)  # compiles
    present, present_seconds = measure(tables)
    names = " | ".join(table.name for table in CHOOSING)
    lines = [
        "# Constants of auto, each varied alone",
        "",
        f"Loss relative to the present settings: mean over k = {', '.join(map(str, QUALITY_K))}, the tables of the "
        f"choosing half and {SEEDS} seeds, standard deviation over the seeds, mean on each table; processor time "
        "relative to the present settings.",
        "",
        f"| constant | value | loss | deviation | {names} | time |",
        f"|---|---|---|---|{'---|' * len(CHOOSING)}---|",
        line("present", "", present, present, 1.0),
    ]
    print(*lines, sep="\n", flush=True)
    for constant, values in VALUES.items():
        for value in values:
            with set_to(constant, value):
                losses, seconds = measure(tables)
            shown = f"{value} (now {present_value(constant)})"
            lines.append(line(constant, shown, losses, present, seconds / present_seconds))
            print(lines[-1], flush=True)
    output.mkdir(parents=True, exist_ok=True)
    (output / "settings.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
