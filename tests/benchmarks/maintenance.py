"""Figures of keeping a masked view up to date, each beside its goal and a baseline measured in the same run.

    python -m tests.benchmarks.maintenance OUTPUT [--rows 1000000]

writes ``maintenance.md``, ``churn.csv`` and a plot of many refreshes in a row to the folder OUTPUT. With the real data
sets, which are looked for in the folder that KANON_DUCK_DATA names, there are the experiment of Truta & Campan 2007 on
Adult, too, ``adult_changes.csv``, and its plots. Everything goes through SQL; times are of the wall clock, warm unless
said otherwise. What is missing is left out, and said so.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.benchmarks import adult_changes, churn, report
from tests.benchmarks.tables import data_folder


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    before = report.busy()
    notes = report.machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = churn.one_churn(folder / "one_churn.db", options.rows)
        more, releases = churn.churns_in_a_row(folder / "in_a_row.db", options.rows // 10)
    figures += more
    report.write_csv(figures, options.output / "churn.csv")
    churn.draw_plot(releases, options.output)
    parts = [report.table(figures)]
    if not churn.TRIGGERS:
        notes.append("this DuckDB has no triggers: capture => 'trigger' was left out")
    real = data_folder()
    if real is None:
        notes.append("KANON_DUCK_DATA is not set: the experiment on Adult was left out")
    else:
        comparisons = list(adult_changes.on_adult(real))
        report.write_csv(comparisons, options.output / "adult_changes.csv")
        adult_changes.draw_plots(comparisons, options.output)
        parts.append(report.section("Adult", report.table(comparisons)))
        notes += adult_changes.summary(comparisons)
    notes.append(f"load of the machine: {before} at the beginning, {report.busy()} at the end")
    title = "Keeping a masked view up to date"
    print(report.write(title, notes, parts, options.output / "maintenance.md"))


if __name__ == "__main__":
    main()
