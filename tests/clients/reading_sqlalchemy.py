"""Reads a published file with SQLAlchemy and duckdb-sqlalchemy (or duckdb-engine, whichever is installed)."""

import hashlib
import sys
from pathlib import Path

import duckdb
import sqlalchemy

engine = sqlalchemy.create_engine(f"duckdb:///{sys.argv[1]}", connect_args={"read_only": True})
print(f"SQLAlchemy {sqlalchemy.__version__}, {type(engine.dialect).__module__}, DuckDB {duckdb.__version__}")
inspector = sqlalchemy.inspect(engine)
print(inspector.get_table_names(schema="main"), inspector.get_table_comment("patients_masked")["text"])
for column in inspector.get_columns("patients_masked")[:3]:
    print(column["name"], column["type"], "-", column["comment"])
reflected = sqlalchemy.Table("patients_masked", sqlalchemy.MetaData(), autoload_with=engine)
with engine.connect() as connection:
    print(connection.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(reflected)).scalar_one(), "rows")
    queries = (Path(__file__).parent / "queries.sql").read_text().split(";\n")
    for number, query in enumerate([query for query in queries if query], 1):
        rows = connection.execute(sqlalchemy.text(query)).fetchall()
        text = "\n".join("|".join("" if value is None else str(value).lower() for value in row) for row in rows)
        print(number, len(rows), hashlib.sha256(text.encode()).hexdigest()[:12])
