"""What was published is a release, whole, and nothing else; a target that fails keeps what it had."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kanon_duck
from kanon_duck.errors import Cancelled
from kanon_duck.publishing import duckdb_file, files
from tests.people import one
from tests.publishing import SECRET, change, clinic, same_rows

pytestmark = pytest.mark.surface


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    """The owner's database, in the folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    with clinic(tmp_path) as connection:
        yield connection


def publish(owner: duckdb.DuckDBPyConnection, target: object, options: str = "") -> dict[str, Any]:
    return one(owner, f"CALL kanon.publish('patients_masked', '{target}' {options})")


def release_in(path: Path | str) -> int:
    with duckdb.connect(str(path), read_only=True) as reader:
        return reader.execute("SELECT max(release) FROM kanon.published WHERE is_current").fetchall()[0][0]


def verified(path: Path) -> list[tuple[Any, ...]]:
    """What verify.sql finds wrong with a DuckDB file, in plain DuckDB."""
    with duckdb.connect(str(path), read_only=True) as reader:
        return reader.execute(Path(f"{path}.verify.sql").read_text()).fetchall()


def test_a_file_holds_the_release_and_what_readers_need(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    owner.execute("COMMENT ON VIEW patients_masked IS 'for the board'")
    owner.execute("COMMENT ON COLUMN patients_masked.zip IS 'postcode'")
    row = publish(owner, "bi.duckdb")
    assert {name: row[name] for name in ("view_name", "target", "kind", "release", "stale", "rows", "warnings")} == {
        "view_name": "patients_masked",
        "target": str(tmp_path / "bi.duckdb"),
        "kind": "duckdb",
        "release": 1,
        "stale": False,
        "rows": 300,
        "warnings": [],
    }
    assert sorted(set(os.listdir()) - {"owner.duckdb.wal"}) == ["bi.duckdb", "bi.duckdb.verify.sql", "owner.duckdb"]
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        assert reader.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall() == [
            ("kanon", "published"),
            ("kanon_readers", "hierarchies"),
            ("kanon_readers", "hierarchy_leaves"),
            ("main", "patients_masked"),
        ]
        assert same_rows(owner, "FROM patients_masked", reader, "FROM patients_masked")
        for query in (
            "DESCRIBE patients_masked",
            "SELECT sum(kanon.overlap(age_min, age_max, 30, 40)) FROM patients_masked",
            "SELECT count(*) FILTER (kanon.covers('work', work, 'local') AND kanon.covers('zip', zip, '75213')) "
            "FROM patients_masked",
            "SELECT count(*) FILTER (kanon.covers('flat', address, 'x')) FROM patients_masked",
            "SELECT kanon.generalize('work', 'local', 1), kanon.common_ancestor('work', ['local', 'state'])",
        ):
            assert reader.execute(query).fetchall() == owner.execute(query).fetchall()
        [(comment,)] = reader.execute("SELECT comment FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        assert comment.startswith("for the board (kanon_duck: release 1 of masked view patients_masked, ")
        assert comment.endswith("; k = 5, l = 2 for disease)")
        comments = dict(
            reader.execute(
                "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'patients_masked'"
            ).fetchall()
        )
        assert comments["zip"] == "postcode (quasi-identifier: the common label of the class in hierarchy zip)"
        assert all(comments.values())
        assert SECRET not in str(comments)
        published = one(reader, "SELECT * EXCLUDE (released_at, published_at) FROM kanon.published")
        assert published == {
            "view_name": "patients_masked",
            "release": 1,
            "is_current": True,
            "table_schema": "main",
            "table_name": "patients_masked",
            "model": "k = 5, l = 2 for disease",
        }
    assert verified(tmp_path / "bi.duckdb") == []


def test_only_leaves_that_a_released_label_stands_for_are_told(tmp_path: Path) -> None:
    with kanon_duck.connect(tmp_path / "owner.duckdb") as owner:
        owner.execute(
            "CREATE TABLE jobs AS SELECT i AS id, ['a1', 'a2', 'b1'][1 + i % 3] AS job FROM range(30) AS r(i)"
        )
        owner.execute(
            "CALL kanon.create_hierarchy('job', edges => $$FROM (VALUES ('a1', 'a'), ('a2', 'a'), ('a3', 'a'), "
            "('b1', 'b'), ('b2', 'b'), ('c1', 'c'), ('a', '*'), ('b', '*'), ('c', '*'))$$)"
        )
        owner.execute("CALL kanon.create_hierarchy('unused', levels => $$SELECT 'never', '*'$$)")
        owner.execute(
            "CALL kanon.create_masked_view('masked', source => 'jobs', key => 'id', k => 8, quasi_identifiers => ['job'])"
        )
        owner.execute(f"CALL kanon.publish('masked', '{tmp_path}/bi.duckdb')")
        labels = {label for (label,) in owner.execute("SELECT DISTINCT job FROM masked").fetchall()}
        with duckdb.connect(f"{tmp_path}/bi.duckdb", read_only=True) as reader:
            leaves = {leaf for (leaf,) in reader.execute("SELECT DISTINCT leaf FROM kanon.hierarchy_nodes").fetchall()}
            assert labels == leaves == {"a1", "a2", "b1"}
            assert reader.execute("SELECT hierarchy, leaves, nodes FROM kanon.hierarchies").fetchall() == [
                ("job", 3, 6)
            ]


def test_a_target_holds_what_the_last_call_named(owner: duckdb.DuckDBPyConnection) -> None:
    owner.execute("CREATE TABLE staff AS SELECT i AS id, 20 + i % 9 AS age FROM range(40) AS r(i)")
    owner.execute(
        "CALL kanon.create_masked_view('staff_masked', source => 'staff', key => 'id', k => 4, quasi_identifiers => ['age'])"
    )
    owner.execute("CALL kanon.publish(['staff_masked', 'patients_masked'], 'bi.duckdb')")
    listed = "SELECT view_name, release, stale FROM kanon.publications"
    assert owner.execute(listed).fetchall() == [("staff_masked", 1, False), ("patients_masked", 1, False)]
    owner.execute("DROP TABLE staff")
    owner.execute("CALL kanon.drop_masked_view('staff_masked')")
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    assert owner.execute(listed).fetchall() == [("patients_masked", 1, True)]
    [row] = owner.execute("SELECT view_name, release, warnings FROM kanon.publish_all()").fetchall()
    assert row == ("patients_masked", 2, ["staff_masked, which was dropped, is no longer in the target"])
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        assert reader.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall() == [
            ("patients_masked",)
        ]
    assert owner.execute("FROM kanon.publish_all()").fetchall() == []
    os.remove("bi.duckdb")
    assert len(owner.execute("FROM kanon.publish_all()").fetchall()) == 1


def test_earlier_releases_stand_beside_the_current_one(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for number in (1, 2):
        change(owner, number)
        owner.execute("CALL kanon.refresh('patients_masked')")
    publish(owner, "bi.duckdb", ", releases => 'all'")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        for release in (1, 2):
            table = f"releases.patients_masked_{release}"
            assert same_rows(owner, f"FROM kanon.as_of('patients_masked', {release})", reader, f"FROM {table}")
            columns = [name for name, *_ in reader.execute(f"DESCRIBE {table}").fetchall()]
            assert columns == [name for name, *_ in owner.execute("DESCRIBE patients_masked").fetchall()]
            ordered = reader.execute(f"FROM {table} ORDER BY {', '.join(columns)}").fetchall()
            assert reader.execute(f"FROM {table}").fetchall() == ordered  # by what rows show, not by when they left
    assert verified(tmp_path / "bi.duckdb") == []
    owner.execute("CALL kanon.rebuild('patients_masked', k => 6, new_series => true)")
    change(owner, 3)
    owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:  # earlier series are not proved safe with this one
        assert reader.execute("SELECT release FROM kanon.published ORDER BY ALL").fetchall() == [(4,), (5,)]


def test_earlier_releases_of_a_derived_view_stand_beside_the_current_one(
    owner: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    owner.execute("CALL kanon.refresh('patients_masked')")
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    owner.execute("CALL kanon.create_masked_view('derived', derive_from => 'patients_masked', k => 15)")
    for number in (2, 3):
        change(owner, number)
        owner.execute("CALL kanon.refresh('patients_masked')")
    owner.execute("CALL kanon.publish(['derived', 'patients_masked'], 'bi.duckdb', releases => 'all')")
    made = "SELECT view_name, release FROM kanon.releases WHERE view_name = 'derived' ORDER BY ALL"
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        told = "SELECT view_name, release FROM kanon.published WHERE view_name = 'derived' ORDER BY ALL"
        releases = reader.execute(told).fetchall()
        assert releases == owner.execute(made).fetchall()
        assert releases[0] == ("derived", 2)
        assert len(releases) > 1
        for _, release in releases[:-1]:
            rows = f"FROM kanon.as_of('derived', {release})"
            assert same_rows(owner, rows, reader, f"FROM releases.derived_{release}")
    assert verified(tmp_path / "bi.duckdb") == []


def test_refresh_publishes_and_a_failing_target_never_loses_it(
    owner: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    [(warnings,)] = owner.execute("SELECT warnings FROM kanon.refresh('patients_masked', publish => true)").fetchall()
    assert "patients_masked was never published" in warnings[-1]
    with pytest.raises(duckdb.Error, match="dry_run and publish are both true"):
        owner.execute("CALL kanon.refresh('patients_masked', dry_run => true, publish => true)")
    os.mkdir("gone")
    publish(owner, "gone/bi.duckdb")
    publish(owner, "bi.duckdb")
    shutil.rmtree("gone")
    change(owner)
    release, warnings = owner.execute(
        "SELECT release, warnings FROM kanon.refresh('patients_masked', publish => true)"
    ).fetchall()[0]
    assert release == 2
    assert "its folder does not exist" in warnings[-1]
    assert "publish_all() tries again" in warnings[-1]
    assert release_in("bi.duckdb") == 2
    listed = "SELECT release, stale FROM kanon.publications ORDER BY target DESC"
    assert owner.execute(listed).fetchall() == [(1, True), (2, False)]
    told = "SELECT release, stale, warnings[1] LIKE '%folder does not exist%' FROM kanon.publish_all()"
    assert owner.execute(told).fetchall() == [(1, True, True)]
    os.mkdir("gone")
    assert owner.execute("SELECT release, stale FROM kanon.publish_all()").fetchall() == [(2, False)]


@pytest.mark.parametrize("refreshed", ["patients_masked", "derived"])
def test_views_that_are_released_together_are_published_together(
    owner: duckdb.DuckDBPyConnection, refreshed: str
) -> None:
    owner.execute("CALL kanon.create_masked_view('derived', derive_from => 'patients_masked', k => 15)")
    publish(owner, "parent.duckdb")
    owner.execute("CALL kanon.publish('derived', 'derived.duckdb')")
    change(owner)
    owner.execute(f"CALL kanon.refresh('{refreshed}', publish => true)")
    listed = "SELECT view_name, release, stale FROM kanon.publications ORDER BY ALL"
    assert owner.execute(listed).fetchall() == [("derived", 2, False), ("patients_masked", 2, False)]
    assert release_in("parent.duckdb") == release_in("derived.duckdb") == 2


FAULTS = [
    ("folder.duckdb", "there is a folder of that name"),
    ("missing/bi.duckdb", "its folder does not exist"),
    ("file/bi.duckdb", "its folder is a file"),
    ("owner.duckdb", "is the file of database owner, which is open here"),
    ("link_to_owner.duckdb", "is the file of database owner, which is open here"),
    ("other.duckdb", "holds something that kanon_duck has not published"),
    ("broken.duckdb", "holds something that kanon_duck has not published"),
    ("bi.xlsx", "name a file that ends in"),
    ("/proc/bi.duckdb", "bi.duckdb was not published"),
    ("many*.parquet", "by which DuckDB means many files"),
]


@pytest.mark.parametrize(("target", "message"), FAULTS)
def test_a_target_that_cannot_be_is_refused(owner: duckdb.DuckDBPyConnection, target: str, message: str) -> None:
    os.mkdir("folder.duckdb")
    Path("file").write_text("a file")
    Path("broken.duckdb").write_bytes(b"half of a file" * 1000)
    os.symlink("owner.duckdb", "link_to_owner.duckdb")
    duckdb.connect("other.duckdb").close()
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir() if "owner" not in path.name}
    with pytest.raises(duckdb.Error, match="target") as refused:
        publish(owner, target)
    assert message in str(refused.value)
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir() if "owner" not in path.name} == before
    assert owner.execute("FROM kanon.publications").fetchall() == []
    assert publish(owner, "bi.duckdb")["release"] == 1


def test_options_are_checked(owner: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="storage_version is 'v9': name a version of DuckDB"):
        publish(owner, "bi.duckdb", ", storage_version => 'v9'")
    with pytest.raises(duckdb.Error, match="releases is 'some': it must be one of current, all"):
        publish(owner, "bi.duckdb", ", releases => 'some'")
    with pytest.raises(duckdb.Error, match="view_name names 'nobody'"):
        owner.execute("CALL kanon.publish('nobody', 'bi.duckdb')")
    with pytest.raises(duckdb.Error, match="view_name has a masked view twice"):
        owner.execute("CALL kanon.publish(['patients_masked', 'patients_masked'], 'bi.duckdb')")
    with pytest.raises(duckdb.Error, match="view_name is missing"):
        owner.execute("CALL kanon.publish([], 'bi.duckdb')")
    assert set(os.listdir()) <= {"owner.duckdb", "owner.duckdb.wal"}
    publish(owner, "bi.duckdb", ", storage_version => 'v1.5.0'")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        [(tags,)] = reader.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'bi'").fetchall()
        assert tags["storage_version"].startswith("v1.5")


def test_a_link_leads_to_the_file_that_is_replaced(owner: duckdb.DuckDBPyConnection) -> None:
    os.mkdir("away")
    os.symlink("away/bi.duckdb", "bi.duckdb")
    publish(owner, "bi.duckdb")
    os.chmod("away/bi.duckdb", 0o640)
    publish(owner, "bi.duckdb")
    assert os.path.islink("bi.duckdb")
    assert os.stat("away/bi.duckdb").st_mode & 0o777 == 0o640


def test_a_full_disk_leaves_the_old_file(owner: duckdb.DuckDBPyConnection) -> None:
    publish(owner, "bi.duckdb")
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    owner.execute("CHECKPOINT")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    try:
        with pytest.raises(duckdb.Error, match="was not published, and what was there stays as it was") as refused:
            publish(owner, "bi.duckdb")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert "larger than this process may write" in str(refused.value)
    assert release_in("bi.duckdb") == 1
    assert not [name for name in os.listdir() if files.NEW in name]
    assert publish(owner, "bi.duckdb")["release"] == 2
    assert release_in("bi.duckdb") == 2


WRITES = """
import os, sys, duckdb
file = duckdb.connect("bi.duckdb", config={"checkpoint_threshold": "1GB"})
file.execute(sys.argv[1])
print("written", flush=True)
sys.stdin.read()
os._exit(9)
"""


@pytest.mark.parametrize("is_alive", [False, True])
def test_what_others_wrote_into_the_old_file_is_not_in_the_new_one(
    owner: duckdb.DuckDBPyConnection, tmp_path: Path, is_alive: bool
) -> None:
    publish(owner, "bi.duckdb")
    change(owner)
    written = "DELETE FROM patients_masked WHERE rowid % 3 <> 0; CREATE TABLE own AS SELECT 1 AS one"
    with subprocess.Popen(
        [sys.executable, "-c", WRITES, written], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        if not is_alive:
            writer.communicate("")
        assert os.path.exists("bi.duckdb.wal")
        owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
        if is_alive:
            writer.communicate("")
    assert not os.path.exists("bi.duckdb.wal")
    assert release_in("bi.duckdb") == 2
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        assert same_rows(owner, "FROM patients_masked", reader, "FROM patients_masked")
        assert reader.execute("FROM duckdb_tables() WHERE table_name = 'own'").fetchall() == []
    assert verified(tmp_path / "bi.duckdb") == []


def test_the_log_of_a_file_that_is_gone_is_not_replayed(owner: duckdb.DuckDBPyConnection) -> None:
    subprocess.run([sys.executable, "-c", WRITES, "CREATE TABLE own AS SELECT 1"], input="", text=True, check=False)
    os.remove("bi.duckdb")
    assert os.path.exists("bi.duckdb.wal")
    publish(owner, "bi.duckdb", ", storage_version => 'v1.5.0'")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        assert reader.execute("FROM duckdb_tables() WHERE table_name = 'own'").fetchall() == []


def test_a_file_that_others_change_at_once_is_not_called_published(
    owner: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(owner, "bi.duckdb")
    whole = files.os.replace

    def replace(new: Path, path: Path) -> None:
        whole(new, path)
        if path.name == "bi.duckdb":
            with duckdb.connect(str(path)) as other:
                other.execute("DELETE FROM patients_masked WHERE rowid = 0")

    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", replace)
        with pytest.raises(duckdb.Error, match="was written, but does not read back under its name"):
            publish(owner, "bi.duckdb")
    assert owner.execute("SELECT stale FROM kanon.publications").fetchall() == [(True,)]
    assert publish(owner, "bi.duckdb")["stale"] is False


KILLED = """
import sys, kanon_duck
from kanon_duck.publishing import duckdb_file
owner = kanon_duck.connect("owner.duckdb")
step = sys.argv[1]
if step != "files.replace":
    whole = getattr(duckdb_file, step)
    def die(*arguments):
        result = whole(*arguments)
        import os; os.kill(os.getpid(), 9)
    setattr(duckdb_file, step, die)
else:
    import os
    from kanon_duck.publishing import files
    files.os.replace = lambda *arguments: os.kill(os.getpid(), 9)
owner.execute("CALL kanon.publish('patients_masked', 'bi.duckdb')")
"""


@pytest.mark.parametrize("step", ["fingerprint", "_add_what_readers_use", "files.replace"])
def test_a_killed_process_leaves_the_old_file(owner: duckdb.DuckDBPyConnection, step: str) -> None:
    publish(owner, "bi.duckdb")
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    owner.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, step], capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert release_in("bi.duckdb") == 1
    left = [name for name in os.listdir() if files.NEW in name]
    assert left
    for name in left:  # as if it had been killed yesterday
        os.utime(name, (time.time() - 86400, time.time() - 86400))
    with kanon_duck.connect("owner.duckdb") as again:
        assert again.execute("SELECT release, stale FROM kanon.publish_all()").fetchall() == [(2, False)]
    assert release_in("bi.duckdb") == 2
    assert not [name for name in os.listdir() if files.NEW in name]


@pytest.mark.parametrize("target", ["bi.parquet", "bi.csv", "bi/"])
def test_files_of_other_kinds_hold_the_release(owner: duckdb.DuckDBPyConnection, target: str, tmp_path: Path) -> None:
    row = publish(owner, target)
    assert row["kind"] == target.partition(".")[2] or "parquet"
    file = "bi/patients_masked.parquet" if target == "bi/" else target
    verification = Path("bi/verify.sql" if target == "bi/" else f"{target}.verify.sql")
    with duckdb.connect() as reader:
        assert same_rows(owner, "FROM patients_masked", reader, f"FROM '{file}'")
        if target != "bi.csv":
            told = dict(reader.execute(f"SELECT key, value FROM parquet_kv_metadata('{file}')").fetchall())
            assert told[b"kanon_model"] == b"k = 5, l = 2 for disease"
            assert (told[b"kanon_view"], told[b"kanon_release"]) == (b"patients_masked", b"1")
            assert told[b"kanon_released_at"].startswith(b"20")
        os.chdir(verification.parent)
        assert reader.execute(Path(verification.name).read_text()).fetchall() == []
        os.chdir(tmp_path)
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked', publish => true)")
    with duckdb.connect() as reader:
        assert same_rows(owner, "FROM patients_masked", reader, f"FROM '{file}'")
    for options, message in (
        (", releases => 'all'", "only these hold earlier releases"),
        (", storage_version => 'v1.2.0'", "is no DuckDB file: leave it out"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            publish(owner, target, options)
    before = Path(file).read_bytes()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    try:
        with pytest.raises(duckdb.Error, match="was not published, and what was there stays as it was"):
            publish(owner, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert Path(file).read_bytes() == before
    assert publish(owner, target)["stale"] is False


def test_files_of_others_stay(owner: duckdb.DuckDBPyConnection) -> None:
    os.mkdir("bi")
    for name in ("bi.parquet", "bi.csv", "bi/patients_masked.parquet"):
        owner.execute(f"COPY (SELECT 1 AS one) TO '{name}'")
    for target in ("bi.parquet", "bi.csv", "bi/"):
        with pytest.raises(duckdb.Error, match="holds something that kanon_duck has not published"):
            publish(owner, target)
    with pytest.raises(duckdb.Error, match="there is a file of that name"):
        publish(owner, "bi.csv/")


@pytest.mark.parametrize("target", ["bi.duckdb", "bi.parquet", "bi.csv", "bi/"])
def test_a_check_of_others_stays(owner: duckdb.DuckDBPyConnection, target: str) -> None:
    verification = Path("bi/verify.sql" if target == "bi/" else f"{target}.verify.sql")
    verification.parent.mkdir(exist_ok=True)
    for _ in range(2):  # for a new target, and for one that was published
        verification.write_text("-- my own\nSELECT 1")
        before = sorted(os.listdir(verification.parent))
        with pytest.raises(duckdb.Error, match=r"verify\.sql, which holds something that kanon_duck has not published"):
            publish(owner, target)
        assert verification.read_text() == "-- my own\nSELECT 1"
        assert sorted(os.listdir(verification.parent)) == before
        verification.unlink()
        publish(owner, target)
        publish(owner, target)


def test_a_folder_holds_what_the_last_call_named(owner: duckdb.DuckDBPyConnection) -> None:
    owner.execute("CREATE TABLE staff AS SELECT i AS id, 20 + i % 9 AS age FROM range(40) AS r(i)")
    owner.execute(
        "CALL kanon.create_masked_view('staff_masked', source => 'staff', key => 'id', k => 4, quasi_identifiers => ['age'])"
    )
    for target in ("bi.parquet", "bi.csv"):
        with pytest.raises(duckdb.Error, match="holds one table, but view_name names 2 masked views"):
            owner.execute(f"CALL kanon.publish(['staff_masked', 'patients_masked'], '{target}')")
    owner.execute("CALL kanon.publish(['staff_masked', 'patients_masked'], 'bi/')")
    owner.execute("COPY (SELECT 1 AS one) TO 'bi/own.parquet'")
    owner.execute("CALL kanon.publish('patients_masked', 'bi/')")
    assert sorted(os.listdir("bi")) == ["own.parquet", "patients_masked.parquet", "verify.sql"]


@pytest.mark.parametrize("step", ["write_table", "_read_back"])
def test_an_interrupt_leaves_nothing_behind(
    owner: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    publish(owner, "bi.duckdb")
    whole = getattr(duckdb_file, step)

    def interrupted(*arguments: Any) -> None:
        whole(*arguments)
        raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr(duckdb_file, step, interrupted)
        with pytest.raises(duckdb.Error, match="interrupted: nothing was changed"):
            publish(owner, "bi.duckdb")
    assert not [name for name in os.listdir() if files.NEW in name]
    databases = owner.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall()
    assert databases == [("owner",)]
    publish(owner, "bi.duckdb")


def test_made_up_rows_are_published_with_their_weight(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    owner.execute("CREATE TABLE staff AS SELECT i AS id, 20 + i % 9 AS age, i % 4 AS job FROM range(40) AS r(i)")
    owner.execute(
        "CALL kanon.create_masked_view('staff_masked', source => 'staff', key => 'id', k => 4, l => 2, sensitive => ['job'], "
        "quasi_identifiers => ['age'], on_delete => 'counterfeit')"
    )
    owner.execute("DELETE FROM staff WHERE id % 10 = 3")
    owner.execute("CALL kanon.refresh('staff_masked')")
    owner.execute("CALL kanon.publish('staff_masked', 'bi.duckdb')")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        people = reader.execute("SELECT count(*), sum(weight) FROM staff_masked").fetchall()
    assert people == owner.execute("SELECT count(*), sum(weight) FROM staff_masked").fetchall()
    assert people[0][1] == pytest.approx(36)
    assert verified(tmp_path / "bi.duckdb") == []


def test_forget_names_what_was_published(owner: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    change(owner)
    owner.execute("CALL kanon.refresh('patients_masked')")
    publish(owner, "bi.duckdb", ", releases => 'all'")
    [(note,)] = owner.execute("SELECT note FROM kanon.forget('patients_masked', before_release => 2)").fetchall()
    assert f"what was published into {tmp_path}/bi.duckdb stays as it is until you publish again" in note
    publish(owner, "bi.duckdb", ", releases => 'all'")
    with duckdb.connect("bi.duckdb", read_only=True) as reader:
        assert reader.execute("SELECT release FROM kanon.published").fetchall() == [(2,)]
