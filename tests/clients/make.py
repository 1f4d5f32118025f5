"""Publishes a clinic into a folder, and into PostgreSQL if its address follows; prints what the ten queries must find."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from tests.publishing import clinic

QUERIES = [query for query in (Path(__file__).parent / "queries.sql").read_text().split(";\n") if query]


def line(number: int, rows: list[list[object]]) -> str:
    """One line for a query: values as plain text, NULL as nothing."""
    text = "\n".join("|".join("" if value is None else str(value).lower() for value in row) for row in rows)
    return f"{number} {len(rows)} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


if __name__ == "__main__":
    folder, *url = sys.argv[1:]
    with clinic(Path(folder)) as owner:
        for target in (f"{folder}/bi.duckdb", *url):
            owner.execute("CALL kanon.publish('patients_masked', ?)", [target])
        for number, query in enumerate(QUERIES, 1):
            print(line(number, owner.execute(query).fetchall()))
