"""Publishes into PostgreSQL: new tables are filled beside the old ones and take their names in one transaction.

Statements for PostgreSQL are run here, by psycopg; names and texts are composed by it, never pasted into a string.
"""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pyarrow import csv
from sqlglot import exp

from kanon_duck.errors import KanonError
from kanon_duck.publishing.content import MARK, Content
from kanon_duck.runtime.call import Call

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")

SECRETS = ("password", "sslpassword")
"""Parameters of a target that nobody else may see."""

LONGEST_NAME = 63
"""Bytes of a name; PostgreSQL cuts off the rest."""

WAIT = "10s"
"""How long a lock is waited for that somebody has on a table."""

TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "UBIGINT": "numeric(20, 0)",
    "HUGEINT": "numeric(39, 0)",
    "UHUGEINT": "numeric(39, 0)",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "BLOB": "bytea",
    "JSON": "json",
}
"""PostgreSQL's types for DuckDB's; decimals keep their digits, and whatever else there is becomes text."""

AS_THEY_ARE = ("VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")
"""Types that Arrow writes as PostgreSQL reads them; others are turned into text by DuckDB."""


@dataclass(frozen=True)
class Old:
    """The table that a release replaces.

    Attributes
    ----------
    number : int
        Its object identifier.
    owner : str
    grants : list of (str, str, str or None, bool)
        Role (empty: everybody), privilege, column or None for the whole table, and whether the role may grant it on.
    views : list of (str, str, list, str)
        Schema, name, options and definition of each view that reads it.
    indexes : list of str
        Statements that make its indexes.
    """

    number: int
    owner: str
    grants: list[tuple[str, str, str | None, bool]]
    views: list[tuple[str, str, list[str], str]]
    indexes: list[str]


def without_secrets(url: str) -> str:
    """A target without passwords, as it is recorded and shown."""
    parts = urlsplit(url)
    user_info, at, hosts = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name not in SECRETS]
    netloc = f"{user_info.partition(':')[0]}{at}{hosts}"
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(query), ""))


def has_secrets(url: str) -> bool:
    """Whether a target has passwords in it."""
    return bool(_secrets(url))


def is_ours(url: str, names: list[str]) -> bool:
    """Whether the tables of these names, where they are there, were published by kanon_duck."""
    with _connected(url) as connection:
        found = connection.execute(
            "SELECT obj_description(c.oid, 'pg_class') FROM pg_class AS c "
            "JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = current_schema() AND relname = ANY(%s)",
            [names],
        ).fetchall()
    return all(MARK in (comment or "") for (comment,) in found)


def publish_postgresql(call: Call, url: str, contents: list[Content]) -> None:
    """Let tables of the masked views' names, in the schema that comes first in the search path, hold their releases.

    Guarantee: all of it is one transaction, so a reader sees the old release or the new one. Rows go into tables that
    are made anew, so neither their order nor PostgreSQL's statistics tell of anything else.

    Raises
    ------
    KanonError
        With the target and PostgreSQL's words.
    """
    with _connected(url) as connection:
        _set_up(connection)
        new = {f"kanon_new_{uuid.uuid4().hex}": content for content in contents}
        for name, content in new.items():
            _refuse_long_names(content)
            _fill(call, connection, name, content)
        for name, content in new.items():
            _take_place(connection, name, content)
        call.checkpoint(None)
        connection.commit()


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection]:
    """A connection, whose transaction is rolled back unless the body commits it.

    Guarantee: no message holds a password of the target.
    """
    shown = without_secrets(url)
    try:
        import psycopg
    except ImportError as error:
        raise KanonError(f"target {shown} needs psycopg: pip install 'kanon-duck[postgres]'") from error
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            yield connection
            connection.rollback()  # what the body has not committed
    except psycopg.Error as error:
        words = _without(_secrets(url), " ".join(str(error).split()))
        raise KanonError(
            f"target {shown} was not published, and what was there stays as it was: {words}{_remedy(error)}"
        ) from None


def _remedy(error: psycopg.Error) -> str:
    """What to do about an error of PostgreSQL, where that is not clear from its words."""
    import psycopg

    if isinstance(error, psycopg.errors.LockNotAvailable):
        return f" (somebody has used the table for more than {WAIT}: try again, or end that session)"
    if isinstance(error, psycopg.OperationalError) and "password" in str(error):
        return " (set PGPASSWORD, or put the password into the file that PGPASSFILE names)"
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return " (it is a read-only server: name the primary)"
    return ""


def _secrets(url: str) -> list[str]:
    """The passwords in a target, as written and as meant."""
    parts = urlsplit(url)
    written = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    written += [value for name, value in parse_qsl(parts.query) if name in SECRETS]
    return [each for word in written for each in (word, unquote(word)) if each]


def _without(secrets: list[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _set_up(connection: psycopg.Connection) -> None:
    """Read and write texts in the form of DuckDB's, and do not wait for ever for somebody's lock."""
    for name, value in (("lock_timeout", WAIT), ("datestyle", "ISO, YMD"), ("client_encoding", "UTF8")):
        connection.execute("SELECT set_config(%s, %s, true)", [name, value])
    if connection.execute("SELECT current_schema()").fetchone() == (None,):
        raise KanonError(
            "the target's search path names no schema that is there: make one, or name it, as in "
            "postgresql://user@host/db?options=-csearch_path%3Dreports"
        )


def _refuse_long_names(content: Content) -> None:
    """Refuse names that PostgreSQL would cut off.

    Raises
    ------
    KanonError
    """
    for name in (content.table, *content.types):
        if len(name.encode()) > LONGEST_NAME:
            raise KanonError(f"{name} is longer than the {LONGEST_NAME} bytes of a name in PostgreSQL: rename it")


def _fill(call: Call, connection: psycopg.Connection, name: str, content: Content) -> None:
    """Make a new table, with types and comments, and copy the rows of a release into it."""
    from psycopg import sql

    table = sql.Identifier(name)
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(_type(kind))) for column, kind in content.types.items()
    )
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, columns))
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(table)) as copy:
        for batch in call.database.batches(_as_texts(content)):
            written = io.BytesIO()
            csv.write_csv(batch, written, csv.WriteOptions(include_header=False, quoting_style="needed"))
            copy.write(written.getbuffer())
            call.checkpoint(None)
    rows = call.database.value(exp.select("count(*)").from_(content.rows.subquery("released")))
    if connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchone() != (rows,):
        raise KanonError(
            f"masked view {content.view.name} reads back with other rows than it has: nothing was published"
        )
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(content.comment)))
    for column, comment in content.column_comments.items():
        named = sql.SQL("{}.{}").format(table, sql.Identifier(column))
        connection.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(named, sql.Literal(comment)))
    connection.execute(sql.SQL("ANALYZE {}").format(table))


def _type(kind: str) -> Any:
    """PostgreSQL's type for one of DuckDB's."""
    if re.fullmatch(r"DECIMAL\(\d+,\d+\)", kind):
        return kind.replace("DECIMAL", "numeric")
    return TYPES.get(kind, "text")


def _as_texts(content: Content) -> exp.Select:
    """The rows in order, with texts for values that Arrow would write in another form than PostgreSQL reads."""
    columns = []
    for name, kind in content.types.items():
        column: exp.Expr = exp.column(name, quoted=True)
        if kind == "BLOB":
            column = exp.func("concat", exp.Literal.string("\\x"), exp.func("hex", column, dialect="duckdb"))
            column = exp.case().when(exp.column(name, quoted=True).is_(exp.null()), exp.null()).else_(column)
        elif kind not in AS_THEY_ARE:
            column = exp.cast(column, "VARCHAR")
        columns.append(column.as_(name, quoted=True))
    return exp.select(*columns).from_(content.in_order.subquery("released"))


def _take_place(connection: psycopg.Connection, name: str, content: Content) -> None:
    """Give a new table the name of the old one, if any, with everything that belongs to that."""
    from psycopg import sql

    new, final = sql.Identifier(name), sql.Identifier(content.table)
    old = _old_table(connection, content.table)
    if old is not None:
        put_aside = sql.Identifier(name.replace("new", "old"))
        _grant(connection, name, old)
        connection.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(new, sql.Identifier(old.owner)))
        connection.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(final, put_aside))
    connection.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(new, final))
    if old is not None:
        for schema, view, options, definition in old.views:
            given = sql.SQL("WITH ({})").format(sql.SQL(", ").join(map(_option, options))) if options else sql.SQL("")
            connection.execute(
                sql.SQL("CREATE OR REPLACE VIEW {} {} AS {}").format(
                    sql.Identifier(schema, view), given, sql.SQL(_of_postgresql(definition))
                )
            )
        connection.execute(sql.SQL("DROP TABLE {}").format(put_aside))
        for index in old.indexes:
            connection.execute(sql.SQL(_of_postgresql(index)))


def _old_table(connection: psycopg.Connection, table: str) -> Old | None:
    """The table of that name, and what belongs to it.

    Raises
    ------
    KanonError
        When it is no table, or has something that would be lost with it.
    """
    found = connection.execute(
        "SELECT c.oid, relkind::text, pg_get_userbyid(relowner), relrowsecurity "
        "OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) FROM pg_class AS c "
        "JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = current_schema() AND relname = %s",
        [table],
    ).fetchone()
    if found is None:
        return None
    number, kind, owner, row_security = found
    views = connection.execute(
        "SELECT DISTINCT nspname, relname, coalesce(reloptions, '{}'), pg_get_viewdef(v.oid), relkind::text "
        "FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = objid JOIN pg_class AS v ON v.oid = ev_class "
        "JOIN pg_namespace AS n ON n.oid = relnamespace WHERE classid = 'pg_rewrite'::regclass "
        "AND refclassid = 'pg_class'::regclass AND refobjid = %s AND v.oid <> refobjid ORDER BY 1, 2",
        [number],
    ).fetchall()
    triggers = "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal"
    replicated = "SELECT pubname FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid WHERE prrelid = %s"
    lost = [f"trigger {trigger}" for (trigger,) in connection.execute(triggers, [number]).fetchall()]
    lost += [f"publication {each}" for (each,) in connection.execute(replicated, [number]).fetchall()]
    lost += [f"materialized view {view}" for _, view, _, _, view_kind in views if view_kind == "m"]
    lost += ["row security"] * row_security
    if kind != "r":
        raise KanonError(f"{table} is no table in the target: drop it, or publish into another schema")
    if lost:
        raise KanonError(
            f"table {table} of the target has {', '.join(lost)}, which would be lost with the old table: give "
            "them to a view over it instead"
        )
    return Old(number, owner, _grants(connection, number), [view[:4] for view in views], _indexes(connection, number))


def _grants(connection: psycopg.Connection, number: int) -> list[tuple[str, str, str | None, bool]]:
    """Privileges of others than the owner on a table and its columns."""
    return connection.execute(
        """
        SELECT CASE WHEN grantee = 0 THEN '' ELSE pg_get_userbyid(grantee) END, privilege_type, of_column, is_grantable
        FROM (
            SELECT relowner, NULL AS of_column, (aclexplode(relacl)).* FROM pg_class WHERE oid = %(number)s
            UNION ALL
            SELECT relowner, attname, (aclexplode(attacl)).* FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
            WHERE attrelid = %(number)s
        ) AS given WHERE grantee <> relowner
        """,
        {"number": number},
    ).fetchall()


def _grant(connection: psycopg.Connection, name: str, old: Old) -> None:
    """Give the roles on a new table what they have on the old one, and no more (default privileges)."""
    from psycopg import sql

    table = sql.Identifier(name)
    [(number,)] = connection.execute("SELECT %s::regclass::oid", [name]).fetchall()
    for role, *_ in _grants(connection, number):
        connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(table, _role(role)))
    for role, privilege, column, grantable in old.grants:
        of_column = sql.SQL("") if column is None else sql.SQL("({})").format(sql.Identifier(column))
        connection.execute(
            sql.SQL("GRANT {} {} ON {} TO {} {}").format(
                sql.SQL(_of_postgresql(privilege)),
                of_column,
                table,
                _role(role),
                sql.SQL("WITH GRANT OPTION" if grantable else ""),
            )
        )


def _role(name: str) -> Any:
    from psycopg import sql

    return sql.Identifier(name) if name else sql.SQL("PUBLIC")


def _indexes(connection: psycopg.Connection, number: int) -> list[str]:
    """Statements that make the indexes of a table; those of constraints a masked table cannot keep."""
    found = connection.execute(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s "
        "AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)",
        [number],
    ).fetchall()
    return [statement for (statement,) in found]


def _option(option: str) -> Any:
    """An option of a view, as PostgreSQL keeps it: name=value."""
    from psycopg import sql

    name, _, value = option.partition("=")
    return sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))


def _of_postgresql(text: str) -> Any:
    """SQL that PostgreSQL itself has written, from its own catalog."""
    return text
