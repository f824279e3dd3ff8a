"""A worker process, from its own side: where it begins, and what watches over it."""

from __future__ import annotations

import faulthandler
import fcntl
import os
import pickle
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

from windrow.inference.control import Control

is_worker = False
"""Whether this process is a worker, which must not start workers of its own."""

_F_SETSIG = 10  # Linux; not in the module fcntl
_MAX_TEXT = 2000


class Link:
    """What a worker has of the process that started it.

    control: for messages.
    game: the game that all this is about, once it has been unpacked.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.game: Any = None

    def say(self, kind: str, serial: int | None, value: object = None) -> None:
        """Say something about the order of that number."""
        self.control.send((kind, serial, value))


def main(arguments: list[int]) -> None:
    """Run a worker.

    Args:
        arguments: the descriptors it was given, the process id of who started it, and the core it is to stay on, or -1.
    """
    global is_worker
    is_worker = True
    control_fd, probe, lifeline, parent, core = arguments
    _hold(lifeline, parent)
    if core >= 0:
        os.sched_setaffinity(0, [core])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()  # a crash leaves a traceback as last words
    link = Link(Control(socket.socket(fileno=control_fd)))
    threading.Thread(target=_watch, args=(link, probe, parent), name="windrow-watch", daemon=True).start()
    try:
        setup, _ = link.control.receive()
        try:
            if setup["main"] is not None:
                _import_main(*setup["main"])
            link.game = pickle.loads(setup["game"])
            module, _, function = setup["entry"].partition(":")
            entry = getattr(import_module(module), function)
        except BaseException as error:
            link.say("failed", None, describe_error(error))
            return
        entry(link, setup)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # nobody is there to work for


def describe_error(error: BaseException) -> dict[str, Any]:
    """An error as another process can raise it again: itself if it can be pickled, and its traceback as text."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    cause = error.__cause__
    return {"error": _packed(error), "cause": None if cause is None else _packed(cause), "traceback": text}


def _packed(error: BaseException) -> bytes:
    try:
        data = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return data


# --- The end of who started it --------------------------------------------------------------------------------------


def _hold(lifeline: int, parent: int) -> None:
    """Have the system kill this process when the other end of the lifeline closes, whatever it is doing then."""
    if hasattr(fcntl, "F_SETOWN") and sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0] or os.getppid() != parent:
        os._exit(1)  # it was gone before


def _watch(link: Link, probe: int, parent: int) -> None:
    """Answer when asked what the main thread is doing; end when the process that started this one is gone."""
    watched = [probe]
    if hasattr(os, "pidfd_open"):
        try:
            # Forks of that process may hold the lifeline, but they cannot hold this.
            watched.append(os.pidfd_open(parent))
        except OSError:
            os._exit(1)
    main_thread = threading.main_thread().ident
    while True:
        ready, _, _ = select.select(watched, [], [])
        if probe not in ready or not os.read(probe, 1):
            os._exit(1)
        frame = _frames().get(main_thread) if main_thread is not None else None
        try:
            link.say("stuck", None, _describe_frame(frame, link.game))
        except OSError:
            os._exit(1)


def _frames() -> dict[int, FrameType]:
    """What every thread is doing."""
    return sys._current_frames()  # pyright: ignore[reportPrivateUsage] - documented, if only for such purposes


def _describe_frame(frame: FrameType | None, game: Any) -> str:
    """What the game is doing: the method that windrow called, and the state it was given."""
    call, where = None, frame
    while frame is not None and frame.f_back is not None:
        name = str(frame.f_back.f_globals.get("__name__"))
        if name.startswith(("windrow.search.", "windrow.train.")):
            call = frame
            break
        frame = frame.f_back
    if call is None or str(call.f_globals.get("__name__")).startswith(("windrow.search.", "windrow.inference.")):
        return "it was not in a method of the game, as far as Python can tell"
    code = call.f_code
    names = [name for name in code.co_varnames[: code.co_argcount] if name != "self"]
    given = [call.f_locals[name] for name in names if name in call.f_locals]
    text = f"{game!r} was in `{code.co_name}`"
    if where is not None and where is not call:
        text += f" (in `{where.f_code.co_name}`, line {where.f_lineno} of {os.path.basename(where.f_code.co_filename)})"
    if given:
        text += f", given the state\n{_drawn(game, given[0])}"
    if len(given) > 1:
        text += "\nand " + ", ".join(
            f"{name} {value!r:.200}" for name, value in zip(names[1:], given[1:], strict=False)
        )
    return text


def _drawn(game: Any, data: object) -> str:
    """A state in the game's own words, or in Python's."""
    rules = getattr(game, "rules", None)
    try:
        render = getattr(rules, "render", repr)
        return str(render(data))[:_MAX_TEXT]
    except Exception:
        return repr(data)[:_MAX_TEXT]


# --- The module that the other process calls __main__ -----------------------------------------------------------------


def _import_main(kind: str, place: str) -> None:
    """Make the classes of the other process's main program known here, without running what it guards."""
    name = "__mp_main__"  # as multiprocessing calls it: `if __name__ == "__main__"` is false
    run = runpy.run_module if kind == "module" else runpy.run_path
    module = ModuleType(name)
    module.__dict__.update(run(place, run_name=name))
    sys.modules["__main__"] = sys.modules[name] = module
