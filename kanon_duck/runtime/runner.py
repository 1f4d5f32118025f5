"""Runs a call from SQL as one transaction that its statement can interrupt.

DuckDB runs a Python function inside the caller's statement, but an interrupt of that statement does not reach the
statements that the function runs on another connection. So the caller's statement drives the work. Its recursive query
starts the work in a thread and then asks again and again whether it is done. Each question is a *beat*. An interrupted
statement stops asking, and work that nobody asks for any more is rolled back. The commit happens inside the statement's
last question, so work is never committed if its statement is gone.
"""

from __future__ import annotations

import json
import math
import signal
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from types import FrameType
from typing import Any

import duckdb

from kanon_duck.errors import Cancelled, KanonError, RecordedError
from kanon_duck.runtime.call import Call, Memory, Row
from kanon_duck.runtime.database import Database, StatementError
from kanon_duck.runtime.progress import Progress, clear, shown
from kanon_duck.runtime.stability import PROCEDURE

FUNCTION = "kanon_duck_is_not_installed_on_this_connection"
"""Name of the Python function behind every procedure. If it is missing, DuckDB's own message
('Scalar Function with name ... does not exist') says what is wrong."""

BEAT_SECONDS = 0.05
"""How long one question waits for the work to end."""

SILENCE_SECONDS = 0.5
"""After this long without a beat the work pauses; after twice as long again it is given up."""

ONCE = KanonError(
    "a procedure was called for each row of a table: call it once per statement, with constant arguments "
    "(nothing was changed)"
)
"""The error of a statement that calls a procedure for several rows."""

Procedure = Callable[[Call], list[Row]]

_instances: dict[str, Instance] = {}
_interrupts = 0


@dataclass
class Work:
    """One call that is running."""

    database: Database | None = None
    done: threading.Event = field(default_factory=threading.Event)
    beat: threading.Event = field(default_factory=threading.Event)
    last_beat: float = field(default_factory=time.monotonic)
    interrupts_before: int = field(default_factory=lambda: _interrupts)
    interrupted: bool = False
    called_again: bool = False
    """Whether its statement has called it for another row too."""
    connection: int | None = None
    progress: Progress = field(default_factory=Progress)
    rows: list[Row] | None = None
    error: BaseException | None = None
    ending: threading.Lock = field(default_factory=threading.Lock)
    """Held while the transaction is committed or rolled back: an interrupt never comes between."""
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def asked(self, until: float | None = None) -> None:
        """Note that the statement still waits: until the given moment, or now."""
        self.last_beat = time.monotonic() if until is None else until
        self.beat.set()

    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed since the statement began."""
        return self.interrupted or _interrupts != self.interrupts_before

    def checkpoint(self, share: float | None = None) -> None:
        """Stop here if the statement has been interrupted; note the share of the present phase that is done.

        Raises
        ------
        Cancelled
            When the statement no longer asks, or Ctrl-C was pressed since it began.
        """
        if self.stopped():
            raise Cancelled
        if time.monotonic() - self.last_beat > SILENCE_SECONDS:
            self.beat.clear()
            if not self.beat.wait(2 * SILENCE_SECONDS):
                raise Cancelled
        if share is not None:
            self.progress.done(share)

    def phase(self, name: str) -> None:
        """Note that a phase begins. Stop here if the statement has been interrupted."""
        self.progress.begin(name)
        self.checkpoint()


@dataclass
class Instance:
    """One DuckDB database instance with kanon_duck on it."""

    procedure: Callable[[str], Procedure]
    connections: list[weakref.ref[duckdb.DuckDBPyConnection]]
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    turn: threading.Lock = field(default_factory=threading.Lock)
    works: dict[str, Work] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    entry: Callable[[str, str | None, str | None], str | None] = field(init=False)

    def __post_init__(self) -> None:
        """Keep the function that DuckDB calls: DuckDB drops its reference with the connection that registered it."""
        self.entry = self.phase

    def phase(self, step: str, token: str | None, request: str | None) -> str | None:
        """What the SQL function does: one step of a call, or the identity of this instance."""
        if step == "start":
            return self.start(token or "", request or "{}")
        if step == "advance":
            return self.advance(token)
        if step == "finish":
            return self.finish(token)
        return self.identity

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new connection to the database, made from any of those kanon_duck was installed on."""
        for reference in self.connections:
            connection = reference()
            if connection is not None:
                try:
                    return connection.cursor()
                except duckdb.ConnectionException:  # closed; another may still be open
                    continue
        raise KanonError(
            "the connection that kanon_duck was installed on is closed: call kanon_duck.install on this one"
        )

    def start(self, token: str, request: str) -> str | None:
        """Begin a call. Returns the token by which the statement asks for it; None for a row after the first.

        Guarantee: a procedure that is called for several rows of a table changes nothing. All rows are started
        before the first is asked for, so the first one's work is never committed.
        """
        work = Work()
        first = self.works.setdefault(token, work)
        if first is not work:
            first.called_again = True
            return None
        request_read = json.loads(request, parse_float=Decimal)
        try:
            if any(request_read["connection"] == other.connection for other in list(self.works.values())):
                raise KanonError(PROCEDURE)
            work.database = Database(self.cursor())
            work.connection = work.database.value("SELECT current_connection_id()")
        except KanonError as error:
            work.error = error
            work.done.set()
            return token
        # no daemon: Python must not end while DuckDB works in this thread, and unasked work ends by itself
        work.thread = threading.Thread(target=self._run, args=(token, work, work.database, request_read))
        work.thread.start()
        return token

    def advance(self, token: str | None) -> str | None:
        """One beat: 'done' when the work has ended, None to be asked again."""
        work = self.works.get(token or "")
        if work is None or work.called_again:
            return "done"
        work.asked(until=math.inf)  # a terminal that takes no output may hold up the beat, but not the work
        try:
            if not work.stopped():
                with shown(work.progress):
                    work.done.wait(BEAT_SECONDS)
        except KeyboardInterrupt:  # of a handler that is not ours
            work.interrupted = True
        work.asked()
        return "done" if work.done.is_set() or work.stopped() else None

    def finish(self, token: str | None) -> str:
        """Commit the work, or roll it back, and say how it ended: a JSON object with rows or error."""
        if token is None:
            return json.dumps({"error": _sentence(ONCE)})
        work = self.works.pop(token, None)
        if work is None:
            return json.dumps({"error": _sentence(Cancelled())})
        work.asked()
        with work.ending:
            error = work.error
            if work.called_again:
                error = ONCE
            elif work.stopped():
                error = Cancelled()
            try:
                if work.database is not None and (error is None or isinstance(error, RecordedError)):
                    work.database.execute("COMMIT")
                elif work.database is not None and not work.ended.is_set():
                    work.interrupted = True
                    work.database.interrupt()
            except KanonError as refused:
                error = refused
            work.ended.set()
        if work.thread is not None:
            work.thread.join()
        if error is None:
            return json.dumps({"rows": work.rows}, default=str)
        return json.dumps({"error": _sentence(error)})

    def _run(self, token: str, work: Work, database: Database, request: dict[str, Any]) -> None:
        """The thread of one call: wait for our turn, work, then hold the transaction open until it is ended.

        Calls on one database take turns, so that two of them never change the same view at once.
        """
        has_turn = False
        try:
            while not has_turn:
                work.checkpoint()
                has_turn = self.turn.acquire(timeout=BEAT_SECONDS)
            try:
                work.phase("working")
                catalog, schema = request["catalog"], request["schema"]
                database.execute("BEGIN TRANSACTION")
                call = Call(database, request["arguments"], schema, catalog, work.checkpoint, work.phase, self.memory)
                call.use_our_schemas()
                work.rows = self.procedure(request["verb"])(call)
            except Exception as error:  # whatever it is, the caller's statement must hear of it
                work.error = error
            work.done.set()
            while not work.ended.wait(BEAT_SECONDS):
                work.checkpoint()
        except Cancelled as error:
            work.error = error
            work.done.set()
        finally:
            with work.ending:
                work.ended.set()
                database.close()  # rolls back whatever was not committed
                self.works.pop(token, None)  # of a statement that is gone
            if has_turn:
                self.turn.release()


def _sentence(error: BaseException) -> str:
    """The sentence that the caller reads about a failure."""
    if isinstance(error, Cancelled):
        return "interrupted: nothing was changed"
    if isinstance(error, StatementError):
        return f"{error.reason} (nothing was changed)"
    if isinstance(error, KanonError):
        return str(error)
    return f"internal error, nothing was changed: {type(error).__name__}: {error}"


def serve(connection: duckdb.DuckDBPyConnection, procedure: Callable[[str], Procedure]) -> None:
    """Make the procedures callable on the database of a connection.

    Calling it again, on the same or another connection to the same database, only adds the connection.
    """
    # fetchall: on 2.0 a result that is not read to its end keeps the connection busy
    known = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name = ?", [FUNCTION]
    ).fetchall()
    if known:
        [(identity,)] = connection.execute(f"SELECT {FUNCTION}('identity', NULL, NULL)").fetchall()
        instance = _instances[identity]
        if all(reference() is not connection for reference in instance.connections):
            instance.connections.append(weakref.ref(connection))
        return

    _start_one_more_thread(connection)
    instance = Instance(procedure, [weakref.ref(connection)])
    _instances[instance.identity] = instance
    text = "VARCHAR"
    connection.create_function(  # type: ignore[call-overload]  # duckdb's stubs know no word for the handling
        FUNCTION, instance.entry, [text, text, text], text, null_handling="special", side_effects=True
    )
    _count_interrupts()


def _start_one_more_thread(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB start one more thread, because one thread waits in our function while the others work.

    If the owner has set the number of threads, it stays as it is.
    """
    [(external_threads, locked)] = connection.execute(
        "SELECT current_setting('external_threads'), current_setting('lock_configuration')"
    ).fetchall()
    if external_threads == 1 and not locked:
        connection.execute("SET GLOBAL external_threads = 0").fetchall()


def _count_interrupts() -> None:
    """Notice Ctrl-C even if DuckDB runs our function in a thread of its own.

    Python delivers KeyboardInterrupt only to the main thread, which then waits for that thread. This handler counts
    the interrupt and then calls Python's own handler, except inside our function: an exception between two of its lines
    could leave a lock held, or report a failure after the commit. A handler that somebody else has set stays.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def count(number: int, frame: FrameType | None) -> None:
        global _interrupts
        _interrupts += 1
        clear()  # now: the statement may end, and print, before a beat of another thread does
        while frame is not None and frame.f_code is not Instance.phase.__code__:
            frame = frame.f_back
        if frame is None:
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, count)
