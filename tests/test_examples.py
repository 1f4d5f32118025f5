"""The examples work, from the first statement to what readers get."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

import kanon_duck
from kanon_duck.shell.demo import EXAMPLES_FOLDER, run_demo
from tests.test_command_line import lines, run

NIGHTLY = EXAMPLES_FOLDER / "nightly"


def test_the_list_of_examples_names_them_all() -> None:
    linked = set(re.findall(r"\]\(([^)]+)\)", (EXAMPLES_FOLDER / "README.md").read_text(encoding="utf-8")))
    assert linked == {file.name for file in EXAMPLES_FOLDER.iterdir()} - {"README.md", "__pycache__"}


def verified(file: Path) -> list[tuple[object, ...]]:
    """What the verification beside a published file finds, without kanon_duck."""
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(file.with_name(f"{file.name}.verify.sql").read_text(encoding="utf-8")).fetchall()


def test_a_clinic_at_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("sql", "clinic.duckdb", "-f", EXAMPLES_FOLDER / "clinic_at_night.sql")
    assert (done.exit_code, done.stderr) == (0, "")
    assert ["patients_masked", "duckdb", "2", "false"] in lines(done.stdout)
    assert verified(tmp_path / "masked.duckdb") == []
    for command in ("refresh", "publish", "check", "channels"):
        assert run(command, "clinic.duckdb", "--quiet").exit_code == 0


def test_counts_for_bi(tmp_path: Path) -> None:
    with kanon_duck.connect(tmp_path / "clinic.duckdb") as connection:
        run_demo(connection, Console(quiet=True))
    done = run("sql", tmp_path / "clinic.duckdb", "-f", EXAMPLES_FOLDER / "counts_for_bi.sql")
    assert (done.exit_code, done.stderr) == (0, "")
    printed = lines(done.stdout)
    estimated, counted = map(float, printed[printed.index(["estimated", "counted"]) + 2])
    assert estimated == pytest.approx(counted, rel=0.1)
    at_least, at_most, counted = map(float, printed[printed.index(["at_least", "at_most", "counted"]) + 2])
    assert 0 < at_least <= counted * 1.05
    assert at_least <= at_most


def test_adult(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = shared_data / "adult" / "adult.data"
    if not file.is_file():
        pytest.skip(f"no {file}: examples/adult.sql says how to fetch it")
    shutil.copy(file, tmp_path)
    done = run("sql", "adult.duckdb", "-f", EXAMPLES_FOLDER / "adult.sql")
    assert (done.exit_code, done.stderr) == (0, "")
    checked = run("check", "adult.duckdb", "--quiet")
    assert (checked.exit_code, checked.stderr) == (0, "")
    with kanon_duck.connect("adult.duckdb") as connection:
        [(release, waiting)] = connection.execute("SELECT release, waiting FROM kanon.masked_views").fetchall()
        [(people,)] = connection.execute("SELECT count(*) FROM adult").fetchall()
    assert (release, people) == (2, 29_860)
    assert waiting < 0.1 * people


def test_pandas_in_and_out() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES_FOLDER / "pandas_in_and_out.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    smallest = re.search(r"smallest class: (\d+) rows", done.stdout)
    assert smallest
    assert int(smallest[1]) >= 5
    assert re.search(r"born_min +datetime64", done.stdout)


DBT = """
from dbt.cli.main import dbtRunner
for day in (1, 2):
    done = dbtRunner().invoke(["--no-send-anonymous-usage-stats", "run", "--vars", f"day: {day}"])
    assert done.success, done
"""


@pytest.mark.skipif(importlib.util.find_spec("dbt_common") is None, reason="dbt-duckdb is not installed")
def test_dbt_builds_refreshes_and_publishes(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES_FOLDER / "dbt", tmp_path / "dbt")
    done = subprocess.run([sys.executable, "-c", DBT], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with kanon_duck.connect(project / "clinic.duckdb") as connection:
        history = connection.execute("SELECT release, cause FROM kanon.releases").fetchall()
        assert history == [(1, "create"), (2, "refresh")]
        assert connection.execute("SELECT count(*) FROM patients").fetchall() == [(1160,)]
        assert connection.execute("SELECT release, stale FROM kanon.publications").fetchall() == [(2, False)]
    assert verified(project / "masked.duckdb") == []


# What runs every night


@pytest.mark.parametrize(
    ("refreshed", "published", "code"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (2, 1, 2), (1, 2, 2), (0, 2, 2)]
)
def test_a_night_does_every_step_and_ends_with_the_worst_code(
    tmp_path: Path, refreshed: int, published: int, code: int
) -> None:
    stub = tmp_path / "kanon-duck"
    stub.write_text(f'#!/bin/sh\necho "$@"\n[ "$1" = refresh ] && exit {refreshed}\nexit {published}\n')
    stub.chmod(0o755)
    done = subprocess.run(
        ["sh", NIGHTLY / "nightly.sh", "my clinic.duckdb"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    steps = [f"{step} my clinic.duckdb --quiet --wait 600" for step in ("refresh", "publish")]
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (code, steps, "")


def test_the_crontab_is_one() -> None:
    schedules = []
    for line in (NIGHTLY / "crontab").read_text(encoding="utf-8").splitlines():
        if not re.fullmatch(r"#.*|[A-Z_]+=\S.*", line):
            *times, command = line.split(None, 5)
            schedules.append(command)
            assert all(re.fullmatch(r"\*|\d{1,2}", time) for time in times), line
            assert len(times) == 5
            assert "%" not in command, "cron reads % as the end of a line"
    assert schedules == ["nightly.sh /srv/clinic/clinic.duckdb"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_service_and_the_timer(tmp_path: Path) -> None:
    for name in ("kanon-duck.service", "kanon-duck.timer"):
        text = (NIGHTLY / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("/opt/kanon_duck/bin/nightly.sh", shutil.which("true") or ""))
    files = [str(tmp_path / name) for name in ("kanon-duck.service", "kanon-duck.timer")]
    done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_container_writes_nothing_but_its_data() -> None:
    text = (NIGHTLY / "Dockerfile").read_text(encoding="utf-8")
    steps = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    words = [word for word, _ in steps]
    assert set(words) <= {"FROM", "COPY", "RUN", "ENV", "WORKDIR", "USER", "ENTRYPOINT"}
    assert words.index("RUN") < words.index("USER") < words.index("ENTRYPOINT")
    assert steps.index(["ENV", "NUMBA_CACHE_DIR=/opt/kanon_duck/kernels"]) < steps.index(["RUN", "kanon-duck warm-up"])
    assert ["ENV", "HOME=/data TMPDIR=/data"] in steps
    assert ["USER", "1000"] in steps
    for name in re.findall(r"examples/nightly/(\S+) ", text.partition("FROM")[2]):
        assert (NIGHTLY / name).is_file()
