"""Progress lines on stderr: what is being done, and for how long already."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator


class Progress:
    """Prints one line when a stage ends, and one every `every` seconds while it lasts; nothing if `quiet`."""

    def __init__(self, program: str = "nd-export", quiet: bool = False, every: float = 10.0):
        self._program, self._quiet, self._every = program, quiet, every

    def say(self, text: str) -> None:
        if not self._quiet:
            print(f"{self._program}: {text}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def stage(self, text: str) -> Iterator[None]:
        start, done = time.monotonic(), threading.Event()

        def tick():
            while not done.wait(self._every):
                self.say(f"{text} ... {time.monotonic() - start:.0f} s")

        threading.Thread(target=tick, daemon=True).start()
        try:
            yield
        finally:
            done.set()
        self.say(f"{text}: {time.monotonic() - start:.1f} s")
