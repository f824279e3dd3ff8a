"""`windrow play`: a board in the browser that shows the search, or a game in the terminal."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from windrow.cli.match import refuse_evaluator
from windrow.cli.options import (
    BackendOption,
    GameArgument,
    JsonOption,
    NetworkOption,
    ThreadsOption,
    complete_evaluator,
    complete_player,
)
from windrow.cli.output import loading, print_json, stderr, stdout
from windrow.cli.page import AllowHostOption, HostOption, OpenOption, PortOption, serve_page
from windrow.errors import ConfigError, IllegalMoveError
from windrow.games.core_game import CoreGame, State
from windrow.games.native import NativeGame
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.games.turns import parse_turn, render_for
from windrow.play.following import GameSoFar, choose_one
from windrow.play.players import Player, SearchPlayer, make_player
from windrow.play.pretrained import default_for
from windrow.play.specs import parse_game

_UNTRAINED = "rollout:1000"
"""The opponent in games for which windrow has no trained network."""
_WITHOUT_NETWORK = ("rollout", "uniform")
"""Evaluators without a network, which every page offers."""
_MAX_LISTED = 60
"""Maximum number of legal moves listed after an illegal one."""
_HELP = "Type a move such as {example}, or: moves, hint, undo, help, quit."


EXAMPLES = (
    "windrow play connect4 # play in the browser and watch the search",
    "windrow play connect4 --checkpoint runs/c4 # with a trained network",
    "windrow play gomoku -c runs/a -c runs/b # compare two networks side by side",
    "windrow play connect4 runs/c4:sims=400 # in the terminal, against a trained network",
    "windrow play connect4 --text # in the terminal, against the network that comes with windrow",
    "windrow play connect4 pretrained:level=2 # an easier opponent; levels go from 1 to 5",
    "windrow play connect4 solver --moves 4444 # in the terminal, from a position",
    "windrow play connect4 --position '7/7/7/7/3o3/3x3 x' # in the browser, from a position",
    "windrow play backgammon rollout:200 --position '4HPwATDgc/ABMA x 31' # in the terminal, x to play 3-1",
)


def play(
    game: GameArgument,
    player: Annotated[
        str | None,
        typer.Argument(
            metavar="PLAYER",
            help="Play in the terminal against this player: [cyan]pretrained[/cyan], [cyan]rollout:1000[/cyan], "
            "[cyan]random[/cyan], [cyan]solver[/cyan] or a checkpoint. Without a player, a page opens in the browser.",
            autocompletion=complete_player,
        ),
    ] = None,
    is_second: Annotated[bool, typer.Option("--second/--first", help="Let the player move first, or you.")] = False,
    moves: Annotated[str, typer.Option("--moves", "-m", help="Moves already played.")] = "",
    position: Annotated[
        str | None,
        typer.Option("--position", "-p", help="Starting position as text, instead of --moves."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Random seed of the player and of chance (default: a new one every time).", min=0),
    ] = None,
    is_text: Annotated[bool, typer.Option("--text", help="Play in the terminal even if no PLAYER is given.")] = False,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint",
            "-c",
            help="Evaluator of the page's searches: a checkpoint, [cyan]rollout:8[/cyan] or [cyan]uniform[/cyan]. "
            "May "
            "be repeated; the first two are A and B.",
            autocompletion=complete_evaluator,
            rich_help_panel="Page",
        ),
    ] = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    backend: BackendOption = "auto",
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    allow_host: AllowHostOption = None,
    is_opened: OpenOption = True,
    as_json: JsonOption = False,
) -> None:
    """Play in the browser and watch the search, or play in the terminal.

    The page is served to this machine only; stop it with Ctrl-C.

    With a PLAYER or with [cyan]--text[/cyan] you play in the terminal: type a move and press Enter. [cyan]moves[/cyan]
    lists the legal moves, [cyan]hint[/cyan] asks the player for a move, [cyan]undo[/cyan] takes your last move back,
    and [cyan]quit[/cyan] ends the game.
    """
    rules = parse_game(game)
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    if moves and position is not None:
        raise ConfigError("--moves and --position both set the starting position: give only one of them")
    if player is None and not is_text and not as_json:
        from windrow.cli.evaluation import NamedEvaluator, make_evaluator

        def make(name: str) -> NamedEvaluator:
            with loading(name, backend):
                return make_evaluator(rules, name, seed=seed, backend=backend, network=network, num_threads=threads)

        serve = partial(serve_page, "play", host=host, port=port, allow_host=allow_host, is_opened=is_opened)
        _open_page(rules, checkpoint or [], make, serve, moves=moves, position=position or "", is_second=is_second)
        return
    if checkpoint:
        raise ConfigError(
            f"--checkpoint is for the page. In the terminal, name the player: windrow play {game} {checkpoint[0]}"
        )
    player = player or default_for(rules, _UNTRAINED)
    refuse_evaluator(player)
    start = rules.state_from_moves(moves) if position is None else rules.parse(position)
    with stderr().status(f"loading {player}"):
        opponent = make_player(rules, player, seed=seed, network=network, num_threads=threads)
    table = _Table(rules, opponent, own_side=int(is_second), start=start, seed=seed, is_quiet=as_json)
    try:
        table.run()
    finally:
        opponent.close()
    if as_json:
        is_over = rules.to_play(table.state) == TERMINAL
        print_json(
            {
                "game": rules.name,
                "game_options": dict(rules.options),
                "player": opponent.name,
                "you": "second" if is_second else "first",
                "moves": rules.moves_to_text(table.actions, table.start),
                "finished": is_over,
                "score": (rules.returns(table.state)[table.own_side] + 1) / 2 if is_over else None,
            }
        )


def _open_page(
    game: CoreGame,
    names: list[str],
    make: Callable[[str], Any],
    serve: Callable[..., None],
    *,
    moves: str,
    position: str,
    is_second: bool,
) -> None:
    """Serve the board page until interrupted, with the evaluators that `make` makes by their names."""
    from windrow.web.app import require_extra
    from windrow.web.evaluation import NamedEvaluator
    from windrow.web.session import Table

    require_extra()
    if is_second and game.num_players < 2:
        raise ConfigError(f"{game!r} is a single-player game: it has no opponent")
    _ = game.parse(position) if position else game.state_from_moves(moves)  # errors are better said here
    names = names or [default_for(game, _WITHOUT_NETWORK[0])]
    known = [*names, *(name for name in _WITHOUT_NETWORK if name not in names)]
    made = [make(name) for name in known]
    evaluators = [NamedEvaluator(one.label, one.evaluator, is_network=one.is_network) for one in made]
    table = Table(game, evaluators, start=moves, position=position, is_second=is_second)
    try:
        serve(table.open_session, title=f"{game!r} with {made[0].label}")
    finally:
        table.close()


class _Table:
    """A game between a person and a player, who takes all other seats."""

    def __init__(
        self, game: CoreGame, opponent: Player, *, own_side: int, start: State, seed: int, is_quiet: bool
    ) -> None:
        if own_side >= game.num_players:
            raise ConfigError(f"{game!r} is a single-player game: it has no opponent")
        self._dice = random.Random(seed)
        self.game, self.opponent, self.own_side = game, opponent, own_side
        self.start = self.state = start
        self.actions: list[int] = []
        self._console = stderr() if is_quiet else stdout()

    def run(self) -> None:
        """Play until the game is over or the person quits."""
        names = self._names()
        example = names[0] if names else self.game.action_name(0)
        self._say(f"You are {self._seat()}, against {self.opponent.name}. {_HELP.format(example=example)}", style="dim")
        self._show()
        while (turn := self.game.to_play(self.state)) != TERMINAL:
            if turn == CHANCE:
                self._draw()
            elif turn != self.own_side:
                self._answer()
            elif not self._ask(example):
                self._say("Left the game.", style="dim")
                return
        returns = self.game.returns(self.state)[self.own_side]
        verdict = "You win." if returns > 0 else f"{self.opponent.name} wins." if returns < 0 else "The game is a draw."
        self._say(verdict, style="bold")

    def _ask(self, example: str) -> bool:
        """Ask for one input and carry it out; False if the person quits."""
        try:
            self._console.print("your move> ", style="bold", end="")
            self._console.file.flush()
            text = sys.stdin.readline()
        except UnicodeDecodeError:
            text = "\n"
        if not text or text.strip().lower() in ("quit", "q", "exit"):
            return False
        word = text.strip().lower()
        if word in ("help", "?", "h", ""):
            self._say(_HELP.format(example=example), style="dim")
        elif word == "moves":
            self._say(" ".join(self._names()))
        elif word == "hint":
            self._hint()
        elif word == "undo":
            self._undo()
        else:
            try:
                self._make(*parse_turn(self.game, self.state, text.strip()))
            except IllegalMoveError as error:
                self._say(str(error).splitlines()[0], style="red")
                self._say(f"Legal moves: {self._legal_names()}", style="dim")
        return True

    def _seat(self) -> str:
        """The person's side, as the board shows it."""
        has_marks = isinstance(self.game, NativeGame) and self.game.name != "azul"
        marks = ("White", "Black") if self.game.name == "chess" else "xo"
        mark = marks[self.own_side] if has_marks else f"player {self.own_side}"
        return f"{mark} (the {'second' if self.own_side else 'first'} player)"

    def _legal_names(self) -> str:
        names = self._names()
        hidden = len(names) - _MAX_LISTED
        return " ".join(names[:_MAX_LISTED]) + (f" and {hidden} more (type moves)" if hidden > 0 else "")

    def _names(self) -> list[str]:
        return [self.game.move_name(self.state, action) for action in self.game.legal_actions(self.state)]

    def _draw(self) -> None:
        """Draw a chance outcome."""
        outcome = self.game.sample_outcome(self.state, self._dice.getrandbits(64))
        self._say(f"Chance: {self.game.outcome_name(outcome)}", style="magenta")
        self._make(outcome)

    def _answer(self) -> None:
        """Let the opponent play its whole turn."""
        player, state, actions, thought = self.game.to_play(self.state), self.state, list[int](), ""
        with stderr().status("thinking"):
            while self.game.to_play(state) == player:
                if isinstance(self.opponent, SearchPlayer):
                    result = self.opponent.search([state])[0]
                    actions.append(self.opponent.pick(result, len(self.actions) + len(actions)))
                    thought = thought or f" (value {result.value:+.2f} for itself)"
                else:
                    actions.append(choose_one(self.opponent, self._so_far(state, actions)))
                state = self.game.apply(state, actions[-1])
        names = " ".join(self.game.line_names(self.state, actions))
        self._say(f"{self.opponent.name} plays {names}{thought}", style="cyan")
        self._make(*actions)

    def _so_far(self, state: State, actions: list[int]) -> GameSoFar:
        """The game up to `state`, which `actions` lead to from the position on the board."""
        is_whole = self.start == self.game.initial_state()
        return GameSoFar(0, state, (*self.actions, *actions) if is_whole else None)

    def _hint(self) -> None:
        with stderr().status("thinking"):
            action = choose_one(self.opponent, self._so_far(self.state, []))
        self._say(f"{self.opponent.name} would play {self.game.move_name(self.state, action)}", style="cyan")

    def _undo(self) -> None:
        """Take back everything since the person's last move."""
        states = [self.start]
        for action in self.actions:
            states.append(self.game.apply(states[-1], action))
        own = [index for index in range(len(self.actions)) if self.game.to_play(states[index]) == self.own_side]
        if not own:
            self._say("There is nothing to take back.", style="red")
            return
        del self.actions[own[-1] :]
        self.state = states[own[-1]]
        self._show()

    def _make(self, *moves: int) -> None:
        for move in moves:
            self.state = self.game.apply(self.state, move)
            self.actions.append(move)
        self._show()

    def _show(self) -> None:
        self._say(f"\n{render_for(self.state, self.own_side)}\n")

    def _say(self, text: str, *, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False)
