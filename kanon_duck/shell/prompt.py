"""The interactive shell: reads statements from a terminal."""

from __future__ import annotations

from pathlib import Path

import duckdb
from prompt_toolkit import PromptSession
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer
from rich.console import Console
from sqlglot import TokenType, tokenize
from sqlglot.errors import TokenError

from kanon_duck.shell.completion import ShellCompleter
from kanon_duck.shell.help import print_help
from kanon_duck.shell.script import error_message, print_error, print_stopped, run_script

HISTORY_FILE = Path("~/.kanon_duck_history")

PROMPT = "kanon> "

TABLES = """
    SELECT database_name, schema_name, name, kind
    FROM (SELECT *, table_name AS name, 'table' AS kind FROM duckdb_tables()
          UNION ALL BY NAME
          SELECT *, view_name AS name, 'view' AS kind FROM duckdb_views())
    WHERE NOT internal AND schema_name NOT IN ('kanon', 'kanon_private', 'kanon_released')
    ORDER BY ALL"""


def run_shell(connection: duckdb.DuckDBPyConnection, console: Console, errors: Console) -> None:
    """Read statements from the terminal and run them until the user leaves.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Not in use by anybody else.
    console, errors : Console
        Where results and errors are printed.
    """
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "...> ".rjust(width),
        lexer=PygmentsLexer(SqlLexer),
        history=_history(),
        key_bindings=_key_bindings(),
        completer=ShellCompleter(connection),
        complete_while_typing=False,
    )
    console.print(".help explains how this works", style="dim")
    while True:
        try:
            text = session.prompt().strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        match text.removesuffix(";").rstrip():
            case ".quit":
                return
            case command if command.split()[:1] == [".help"]:
                print_help(connection, console, errors, command.removeprefix(".help").strip())
            case command if command.startswith(".") and command != ".tables":
                print_error(errors, f"There is no command {command}: .help lists them.")
            case command:
                _run(connection, TABLES if command == ".tables" else text, console, errors)


def is_complete(text: str) -> bool:
    """Whether Enter runs what has been typed: a command, or a statement up to its semicolon."""
    if not text.strip() or text.lstrip().startswith("."):
        return True
    try:
        tokens = tokenize(text, read="duckdb")
    except TokenError:  # inside a string, a quoted name or a comment
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def _run(connection: duckdb.DuckDBPyConnection, text: str, console: Console, errors: Console) -> None:
    try:
        run_script(connection, text, console)
    except duckdb.Error as error:
        print_error(errors, error_message(error))
    except KeyboardInterrupt as interrupt:
        print_stopped(errors, interrupt)


def _history() -> History:
    file = HISTORY_FILE.expanduser()
    try:
        file.touch(mode=0o600)  # statements can hold people's data
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def run_or_continue(event: KeyPressEvent) -> None:
        if is_complete(event.current_buffer.text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return bindings
