"""A program for tests that plays tic-tac-toe by UCI, UGI or GTP, and misbehaves on demand.

    fake_program.py MODE

It plays the first free square, and at its second move of a game it does what MODE says: play on ("good"), name an
occupied square ("illegal"), end with a message on stderr ("crash"), never answer ("hang"), answer after 0.4 s ("slow"),
or resign ("resign"). "deaf" ends neither at quit nor at the end of its input.
"""

import os
import signal
import sys
import time

SQUARES = [column + row for row in "321" for column in "abc"]
mode = sys.argv[1]
played: list[str] = []
own_moves = 0

if "--pid" in sys.argv:
    with open(sys.argv[sys.argv.index("--pid") + 1], "a") as file:
        print(os.getpid(), file=file)
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def say(text: str) -> None:
    print(text, flush=True)


def choose() -> str:
    """The square to play, or trouble."""
    global own_moves
    own_moves += 1
    if own_moves >= 2:
        if mode == "crash":
            print("out of cheese error", file=sys.stderr)
            sys.exit(3)
        if mode == "illegal":
            return played[0]
        if mode == "hang":
            time.sleep(60)
        if mode == "slow":
            time.sleep(0.4)
        if mode == "resign":
            return "resign"
    return next(square for square in SQUARES if square not in played)


for line in sys.stdin:
    words = line.split()
    command = words[0] if words else ""
    if command == "quit" and mode != "deaf":
        if len(words) == 1 and "--gtp" in sys.argv:
            say("=\n")
        break
    if command in ("uci", "ugi"):
        say("id name fake\noption name Game type string default tictactoe\noption name Skill Level type spin default 3")
        say(f"{command}ok")
    elif command == "isready":
        say("readyok")
    elif command in ("ucinewgame", "uginewgame"):
        own_moves = 0
    elif command == "setoption":
        print(f"set {' '.join(words[1:])}", file=sys.stderr, flush=True)
    elif command == "position":
        played = words[3:] if words[1] == "startpos" else []
    elif command == "go":
        say("info depth 1 score cp 0 pv a1")
        move = choose()
        say(f"bestmove {'(none)' if move == 'resign' else move} ponder a1")
    elif "--gtp" in sys.argv:
        answer = ""
        if command == "clear_board":
            played, own_moves = [], 0
        elif command == "play":
            played.append(words[2].lower())
        elif command == "genmove":
            answer = choose()
            if answer in SQUARES:
                played.append(answer)
            answer = answer.upper()
        elif command == "list_commands":
            answer = "play\ngenmove\nquit"
        say(f"= {answer}\n")
while mode == "deaf":
    time.sleep(0.1)
