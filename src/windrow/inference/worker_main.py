"""A worker process, as seen by itself: its main function, and the thread that watches over it."""

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
"""Whether this process is a worker; workers must not start workers."""

_F_SETSIG = 10  # Linux; not in the module fcntl
_MAX_TEXT = 2000


class Link:
    """A worker's connection to the process that started it.

    control: the connection for messages.
    game: the game, after it has been unpacked; None before.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.game: Any = None

    def say(self, kind: str, serial: int | None, value: object = None) -> None:
        """Send a message about the order with number `serial`."""
        self.control.send((kind, serial, value))


def main(arguments: list[int]) -> None:
    """Run a worker.

    Args:
        arguments: descriptors of the connection, the pipe and the lifeline, the process id of the parent, and the core
            to be pinned to, or -1.
    """
    global is_worker
    is_worker = True
    control_fd, probe, lifeline, parent, core = arguments
    _hold(lifeline, parent)
    if core >= 0:
        os.sched_setaffinity(0, [core])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()  # a crash writes a traceback to standard error
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
        return  # the parent is gone


def describe_error(error: BaseException) -> dict[str, Any]:
    """Describe an error so that another process can raise it again: pickled, with its cause and traceback.

    An error that cannot be pickled becomes a RuntimeError with its text.
    """
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


# --- The end of the parent ------------------------------------------------------------------------------------------


def _hold(lifeline: int, parent: int) -> None:
    """Make the system kill this process as soon as the other end of the lifeline closes."""
    if hasattr(fcntl, "F_SETOWN") and sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0] or os.getppid() != parent:
        os._exit(1)  # the parent had ended before


def _watch(link: Link, probe: int, parent: int) -> None:
    """Report what the main thread is doing when asked; end this process when the parent has ended."""
    watched = [probe]
    if hasattr(os, "pidfd_open"):
        try:
            # Forks of the parent inherit the lifeline and keep it open, but a pidfd reports the parent's own end.
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
    """Return the current frame of every thread, by thread id."""
    return sys._current_frames()  # pyright: ignore[reportPrivateUsage] - documented by Python for debugging


def _describe_frame(frame: FrameType | None, game: Any) -> str:
    """Describe what the game is doing: the method that windrow called, and the state passed to it."""
    call, where = None, frame
    while frame is not None and frame.f_back is not None:
        name = str(frame.f_back.f_globals.get("__name__"))
        if name.startswith(("windrow.search.", "windrow.train.")):
            call = frame
            break
        frame = frame.f_back
    if call is None or str(call.f_globals.get("__name__")).startswith(("windrow.search.", "windrow.inference.")):
        return "as far as Python can tell, it was not in a method of the game"
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
    """Return a state as text: by the game's `render` if it works, otherwise by `repr`."""
    rules = getattr(game, "rules", None)
    try:
        render = getattr(rules, "render", repr)
        return str(render(data))[:_MAX_TEXT]
    except Exception:
        return repr(data)[:_MAX_TEXT]


# --- The parent's __main__ module -------------------------------------------------------------------------------------


def _import_main(kind: str, place: str) -> None:
    """Import the parent's main program, without running its code under `if __name__ == "__main__"`."""
    name = "__mp_main__"  # the same name as in multiprocessing
    run = runpy.run_module if kind == "module" else runpy.run_path
    module = ModuleType(name)
    module.__dict__.update(run(place, run_name=name))
    sys.modules["__main__"] = sys.modules[name] = module
