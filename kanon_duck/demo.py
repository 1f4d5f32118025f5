"""The demonstration: the script examples/clinic.sql, which can be read and run by itself."""

from __future__ import annotations

from pathlib import Path

EXAMPLES_FOLDER = Path(__file__).parent / "examples"
if not EXAMPLES_FOLDER.is_dir():  # a source checkout: the wheel carries the folder inside the package
    EXAMPLES_FOLDER = Path(__file__).parent.parent / "examples"


def demo_script() -> str:
    """The SQL text of the demonstration."""
    return (EXAMPLES_FOLDER / "clinic.sql").read_text(encoding="utf-8")
