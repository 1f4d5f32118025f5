"""The folders of the package are layers: each imports only from those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kanon_duck

PACKAGE = Path(kanon_duck.__file__).parent

LAYERS = [
    "shell",
    "__init__",
    "installation",
    "procedures",
    "publishing",
    "maintenance",
    "inference",
    "release",
    "secure",
    "clustering",
    "intake",
    "catalog",
    "privacy",
    "encoding",
    "hierarchy",
    "runtime",
    "kernels",
    "errors",
]
"""Folders, and files that stand beside them, from the highest to the lowest."""


def layer(module: str) -> str:
    """The layer that a module of the package is in."""
    return (module.split(".") + ["__init__"])[1]


def imports(file: Path) -> set[str]:
    """Layers that a file imports from, its own left out."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {layer(each.name) for each in node.names if each.name.split(".")[0] == "kanon_duck"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kanon_duck":
            found.add(layer(str(node.module)))
    return found - {own_layer(file)}


def own_layer(file: Path) -> str:
    """The layer that a file is in."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def files() -> Iterator[Path]:
    """The package's own files: where it is installed, the examples stand beside them."""
    return (file for file in PACKAGE.rglob("*.py") if own_layer(file) != "examples")


def test_every_folder_has_its_layer() -> None:
    assert {own_layer(file) for file in files()} == set(LAYERS)


def test_no_file_imports_from_a_higher_layer() -> None:
    upward = {
        f"{file.relative_to(PACKAGE)} imports from {above}"
        for file in files()
        for above in imports(file)
        if LAYERS.index(above) < LAYERS.index(own_layer(file))
    }
    assert not upward
