"""A child process that answers frames with frames, and does not outlive its parent."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from thresher.federated.mpyc_worker import frames

__all__ = ["Worker"]

START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location({package!r}, {file!r})
sys.modules[spec.name] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from {package}.serve import main
main()
"""  # loads the folder alone: as a part of thresher it would load all of thresher


class Worker:
    """Runs ``main`` of ``serve.py`` in a folder, which gets ``config`` as its first frame.

    It has a session of its own: an interrupt from the keyboard is for its parent. What it prints is thrown away, since
    it could hold a private value.
    """

    def __init__(self, folder: Path, config: bytes) -> None:
        code = START.format(package=folder.name, file=str(folder / "__init__.py"))
        self._process = subprocess.Popen(  # noqa: S603  (this interpreter, and the code above)
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("MPYC_")},
            start_new_session=True,
        )
        self.killed = False
        """Whether ``kill`` was called: there will be no more answers."""
        self._pipe = ThreadPoolExecutor(1)  # a thread that may wait for a worker that hangs
        self._pipe.submit(self._write, config)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, frame: bytes, timeout: float) -> bytes | None:
        """Its answer, or None if it died without one; TimeoutError if it does not answer in time."""
        return self._pipe.submit(self._round_trip, frame).result(timeout)

    def dismiss(self, frame: bytes, timeout: float) -> None:
        """Sends a last frame, and waits for its end; if it does not come in time, ``kill`` is left."""
        self._pipe.submit(self._write, frame)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def kill(self) -> None:
        """Ends it at once, and whoever waits for it."""
        self.killed = True
        self._process.kill()
        self._process.wait()
        self._pipe.shutdown()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a frame that it did not read
                pipe.close()  # type: ignore[union-attr]

    def _round_trip(self, frame: bytes) -> bytes | None:
        self._write(frame)
        return frames.read_frame(self._process.stdout)  # type: ignore[arg-type]

    def _write(self, frame: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended; its last frame says why
            frames.write_frame(self._process.stdin, frame)  # type: ignore[arg-type]
