// Reads a published file with Node's DuckDB client.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import duckdb, { DuckDBInstance } from "@duckdb/node-api";

const instance = await DuckDBInstance.create(process.argv[2], { access_mode: "READ_ONLY" });
const connection = await instance.connect();
console.log(`Node ${process.version}, DuckDB ${duckdb.version()}`);
const published = await connection.runAndReadAll("SELECT view_name, release, model FROM kanon.published");
console.log(published.getRowsJson()[0].join(", "));
const counted = "SELECT sum(kanon.overlap(age_min, age_max, 30, 40)), count(*) FILTER (kanon.covers('work', work, 'local'))";
console.log((await connection.runAndReadAll(`${counted} FROM patients_masked`)).getRowsJson()[0].join(", "));
const queries = readFileSync(new URL("queries.sql", import.meta.url), "utf8").split(";\n").filter((query) => query);
for (const [index, query] of queries.entries()) {
  const rows = (await connection.runAndReadAll(query)).getRowsJson();
  const text = rows.map((row) => row.map((value) => (value === null ? "" : String(value).toLowerCase())).join("|")).join("\n");
  console.log(index + 1, rows.length, createHash("sha256").update(text).digest("hex").slice(0, 12));
}
