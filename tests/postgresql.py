"""A PostgreSQL server on the loopback interface, for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PASSWORD = "PASSWORD-of-the-test%"


def binaries() -> Path | None:
    """The folder of the newest server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@contextmanager
def server() -> Iterator[tuple[str, Path]]:
    """A server of its own: its address with the owner's name and no password, and its data directory.

    PostgreSQL refuses to run as root, so root starts it as somebody else.
    """
    programs = binaries()
    assert programs is not None
    somebody = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    as_somebody = {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="kanon-postgresql-"))
    try:
        (folder / "password").write_text(PASSWORD)
        for path in (folder, folder / "password"):
            os.chown(path, somebody.pw_uid, somebody.pw_gid)
        data = folder / "data"
        made = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "owner",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-locale",
        ]
        subprocess.run(
            [*made, "-N", "--pwfile", str(folder / "password")],
            check=True,
            capture_output=True,
            cwd=folder,
            **as_somebody,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (folder / "log").open("w") as log:
            running = subprocess.Popen(
                [str(programs / "postgres"), "-D", str(data), *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                **as_somebody,
            )
        try:
            url = f"postgresql://owner@127.0.0.1:{port}/postgres"
            _wait_for(url, running)
            yield url, data
        finally:
            running.terminate()
            running.wait(timeout=30)
    finally:
        shutil.rmtree(folder)


def _wait_for(url: str, running: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        try:
            psycopg.connect(url, password=PASSWORD).close()
            return
        except psycopg.OperationalError:
            assert running.poll() is None, "the server has ended"
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
