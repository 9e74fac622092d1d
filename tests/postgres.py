"""A PostgreSQL server of its own for the tests, from whatever Debian's packages have put on this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def missing() -> str | None:
    """Why no server can be started here, or None."""
    if _programs() is None:
        return "no PostgreSQL server: apt-get install postgresql"
    try:
        import psycopg
        import sqlalchemy
    except ImportError:
        return "PostgreSQL's packages are not installed: pip install 'thresher[postgres]'"
    assert psycopg
    assert sqlalchemy
    return None


@contextmanager
def server() -> Iterator[str]:
    """The address of a new, empty server that listens on a socket in a folder of its own and is gone afterwards."""
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="thresher-pg-"))
    user = _user()
    if user is not None:
        shutil.chown(folder, user)

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [programs / program, *arguments], user=user, cwd=folder, check=True, capture_output=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        )  # fmt: skip

    data = str(folder / "data")
    run("initdb", "--pgdata", data, "--username", "thresher", "--auth", "trust", "--no-sync")
    run("pg_ctl", "--pgdata", data, "--wait", "--log", str(folder / "log"), "--options", f"-k {folder} -h ''", "start")
    try:
        yield f"postgresql://thresher@/postgres?host={folder}"
    finally:
        run("pg_ctl", "--pgdata", data, "--mode", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian does not put it on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = [folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()]
    return found[0] if found else None


def _user() -> str | None:
    """Whom the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
