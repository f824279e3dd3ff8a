"""How a client learns that nobody wants its answers any more."""

from __future__ import annotations


class Halted(BaseException):
    """The server wants no more questions: whatever is being done is to end now.

    Not an `Exception`, as little as an interrupt is: nobody's evaluator has failed.
    """
