"""A program: goes on with a training run and kills itself at a given moment: `FOLDER KIND COUNT`.

KIND is "games" or "steps", and COUNT says which of them, counted over the life of the process.
"""

from __future__ import annotations

import os
import signal
import sys

from windrow.train import TrainingRun


def main(folder: str, kind: str, count: int) -> None:
    run = TrainingRun.resume(folder)
    seen = 0

    def on_event(what: str, numbers: dict[str, float]) -> None:
        nonlocal seen
        seen += what == kind
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)

    for _ in run.iterations(on_event):
        pass


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
