"""What holds for every test: no key, no home, no network but loopback; and a store of each kind for those that want one."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dspy_reflex.runtime.lm.connect import PROVIDERS
from dspy_reflex.store.store import Store
from tests import postgres

# Read when NumPy is imported, so before any test: the suite has a process for each core, and for matrices as small as
# ours two threads take three times the work of one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

QUIET = {
    "DSPY_CACHEDIR": "dspy",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "MPLBACKEND": "agg",
    "NO_COLOR": "1",
    "REFLEX_HOME": "reflex",
    "TERM": "dumb",
}
"""The environment of every test and of the processes it starts; lower-case folders are made below a scratch folder."""
FOLDERS = ("DSPY_CACHEDIR", "REFLEX_HOME")

settings.register_profile("here", deadline=None)  # the machine may be busy
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True, scope="session")
def quiet_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A test must find no key, no settings and no cache of the person who runs it."""
    scratch = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for provider in PROVIDERS.values():
            for name in (*provider.url_variables, provider.key_variable):
                patch.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("REFLEX_")]:
            patch.delenv(name)
        for name, value in QUIET.items():
            patch.setenv(name, str(scratch / value) if name in FOLDERS else value)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """A connection to anything but this machine is an error that names the address."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(str(address[0])):
            raise AssertionError(f"a test reached for the network: {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


def is_loopback(host: str) -> bool:
    """Whether an address is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in a folder of its own, where no `programs` lies about."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def postgresql() -> Generator[str]:
    """A server for all tests; each takes a database of its own."""
    pytest.importorskip("psycopg")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return postgres.database(request.getfixturevalue("postgresql"))


@pytest.fixture
def store(url: str) -> Generator[Store]:
    """An empty store."""
    with Store(url) as opened:
        yield opened
