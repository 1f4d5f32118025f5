"""Prints what a command found of each masked view: for people as a table, for programs as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console

from kanon_duck.shell.of_views import Finding
from kanon_duck.shell.rendering import print_whole
from kanon_duck.shell.script import print_error


@dataclass(frozen=True)
class Output:
    """How a command prints its findings.

    Attributes
    ----------
    console, errors : Console
        Where results are printed, and what is not well.
    as_json : bool
        Print one JSON object for each view.
    quiet : bool
        Print only what is not well.
    """

    console: Console
    errors: Console
    as_json: bool
    quiet: bool


def print_findings(output: Output, findings: Iterable[Finding], rows: Callable[[Finding], list[Finding]]) -> bool:
    """Print findings; JSON as soon as each is known.

    Parameters
    ----------
    output : Output
    findings : iterable of dict
    rows : callable
        The rows of the table that show a finding to people.

    Returns
    -------
    bool
        Whether all is well.
    """
    found = []
    for finding in findings:
        found.append(finding)
        if output.as_json and not (output.quiet and finding["ok"]):
            output.console.print(_json(finding), markup=False, soft_wrap=True)
    if not output.as_json:
        if not output.quiet:
            print_whole(output.console, [row for finding in found for row in rows(finding)])
            for told in [f"{each['view_name']}: {text}" for each in found for text in _warnings(each)]:
                output.console.print(told, style="dim", markup=False, soft_wrap=True)
        for finding in found:
            if not finding["ok"]:
                print_error(output.errors, f"{finding['view_name']}: {finding['reason']}")
    return all(finding["ok"] for finding in found)


def columns(*names: str) -> Callable[[Finding], list[Finding]]:
    """Show a finding as one row of some of its entries."""
    return lambda finding: [{name: finding[name] for name in names}]


def entries(name: str) -> Callable[[Finding], list[Finding]]:
    """Show a finding as the rows that it has under a name."""
    return lambda finding: [{"view_name": finding["view_name"]} | row for row in finding[name]]


def _warnings(finding: Finding) -> list[str]:
    """What is to be said of a view that is well; of others the reason says it."""
    warnings: list[str] = finding.get("warnings", [])
    return warnings if finding["ok"] else []


def _json(finding: Finding) -> str:
    return json.dumps(finding, default=_text, ensure_ascii=False)


def _text(value: Any) -> str:
    """Times in UTC as ISO 8601 says it."""
    return value.isoformat(timespec="seconds") + "Z" if isinstance(value, datetime) else str(value)
