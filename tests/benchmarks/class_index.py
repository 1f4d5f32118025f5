"""Look-ups per second of the class index beside a scan, on classes of five neighbours and on random ones.

Run: ``python -m tests.benchmarks.class_index``. Seconds are those of the process, on one thread.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.order import order
from kanon_duck.kernels.box import NO_CLASS, least_increase
from kanon_duck.kernels.class_tree import ClassIndex, insert_rows
from kanon_duck.maintenance.class_index import best_classes, build_index
from tests.benchmarks.tables import encode_synthetic

QUERIES = 20_000
SCANS = 100
SIZE = 5


def measure(name: str, index: ClassIndex, rows: NDArray[np.unsignedinteger]) -> None:
    """Print one line, and check the first answers against a scan."""
    count = index.used[0]
    boxes = index.low[:count], index.high[:count], index.sizes[:count]
    best_classes(index, rows[:1])
    least_increase(rows[0], *boxes, index.caps, index.weights)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        classes, _ = best_classes(index, rows)
        seconds.append(time.process_time() - begun)
    begun = time.process_time()
    scanned = [least_increase(row, *boxes, index.caps, index.weights) for row in rows[:SCANS]]
    scan_seconds = (time.process_time() - begun) / SCANS
    same = np.mean(classes[:SCANS] == scanned)
    rate = len(rows) / min(seconds)
    print(
        f"{name:34} {count:8,} classes: {rate:10,.0f} look-ups/s, scan {1 / scan_seconds:9,.0f}/s,"
        f" ratio {rate * scan_seconds:7,.0f}, same class as the scan {same:.0%}"
    )


def main() -> None:
    """Measure 9,000 and 180,000 classes."""
    encoding = encode_synthetic(180_000 * SIZE + QUERIES)
    queries = encoding.codes[180_000 * SIZE :]
    in_order = queries[order(replace(encoding, codes=queries), SIZE, lambda _: None)]
    for classes in (9_000, 180_000):
        codes = encoding.codes[: classes * SIZE]
        part = replace(encoding, codes=codes)
        labels = np.empty(len(codes), np.int64)
        labels[order(part, SIZE, lambda _: None)] = np.arange(len(codes)) // SIZE
        begun = time.process_time()
        index = build_index(part, labels)
        print(f"built in {time.process_time() - begun:.3f} s")
        measure("neighbours", index, queries)
        measure("neighbours, look-ups in order", index, in_order)
        joined = np.full(len(queries), NO_CLASS)
        insert_rows(index, queries[:0], joined, 0, np.iinfo(np.int64).max)  # compiles
        begun = time.process_time()
        insert_rows(index, queries, joined, 0, np.iinfo(np.int64).max)
        print(f"{'':34} {len(queries) / (time.process_time() - begun):10,.0f} inserts/s without splits")
        shuffled = np.random.default_rng(0).permutation(labels)
        measure("random rows together", build_index(part, shuffled), queries[:200])


if __name__ == "__main__":
    main()
