"""`windrow play`: a person against a player, in the terminal."""

from __future__ import annotations

import random
import sys
from typing import Annotated

import typer

from windrow.cli.options import GameArgument, JsonOption, complete_player, examples
from windrow.cli.output import print_json, stderr, stdout
from windrow.errors import ConfigError, IllegalMoveError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.play.players import Player, SearchPlayer, make_player
from windrow.play.specs import parse_game

_HELP = "A move such as {example}, or: moves, hint, undo, help, quit."


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow play connect4 # against random games, 1000 simulations a move",
            "windrow play connect4 runs/c4:sims=400 # against a trained network",
            "windrow play othello rollout:200 --second # the player moves first",
            "windrow play connect4 solver --moves 4444 # from a position on",
        )
    )(play)


def play(
    game: GameArgument,
    player: Annotated[
        str,
        typer.Argument(
            metavar="PLAYER",
            help="Against whom: [cyan]rollout:1000[/cyan], [cyan]random[/cyan], [cyan]solver[/cyan], a checkpoint.",
            autocompletion=complete_player,
        ),
    ] = "rollout:1000",
    is_second: Annotated[bool, typer.Option("--second/--first", help="Who moves first: the player, or you.")] = False,
    moves: Annotated[str, typer.Option("--moves", "-m", help="Moves that are made already.")] = "",
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the player and of chance; another one every time.", min=0)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play against a player in the terminal.

    Type a move and Enter. [cyan]moves[/cyan] lists what is legal, [cyan]hint[/cyan] asks the player, [cyan]undo[/cyan]
    takes your last move back, [cyan]quit[/cyan] ends the game.
    """
    rules = parse_game(game)
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    opponent = make_player(rules, player, seed=seed)
    table = _Table(rules, opponent, own_side=int(is_second), moves=moves, seed=seed, is_quiet=as_json)
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


class _Table:
    """A game between a person and a player, who takes all other seats."""

    def __init__(
        self, game: CoreGame, opponent: Player, *, own_side: int, moves: str, seed: int, is_quiet: bool
    ) -> None:
        if own_side >= game.num_players:
            raise ConfigError(f"{game!r} is a game for one: there is no second player")
        self._dice = random.Random(seed)
        self.game, self.opponent, self.own_side = game, opponent, own_side
        self.start = game.state_from_moves(moves)
        self.state: State = self.start
        self.actions: list[int] = []
        self._console = stderr() if is_quiet else stdout()

    def run(self) -> None:
        """Play until the game is over or the person leaves."""
        example = self.game.action_name(0)
        self._say(f"You against {self.opponent.name}. {_HELP.format(example=example)}", style="dim")
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
        verdict = "You win." if returns > 0 else f"{self.opponent.name} wins." if returns < 0 else "A draw."
        self._say(verdict, style="bold")

    def _ask(self, example: str) -> bool:
        """Let the person do something; False if that is to leave."""
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
            self._say(" ".join(map(self.game.action_name, self.game.legal_actions(self.state))))
        elif word == "hint":
            self._hint()
        elif word == "undo":
            self._undo()
        else:
            try:
                self._make(self.game.parse_action(text.strip()))
            except IllegalMoveError as error:
                self._say(str(error).splitlines()[0], style="red")
        return True

    def _draw(self) -> None:
        """Let chance do what it does."""
        outcome = self.game.sample_outcome(self.state, self._dice.getrandbits(64))
        self._say(f"Chance: {self.game.outcome_name(outcome)}", style="magenta")
        self._make(outcome)

    def _answer(self) -> None:
        thought = ""
        with stderr().status("thinking"):
            if isinstance(self.opponent, SearchPlayer):
                result = self.opponent.search([self.state])[0]
                action = self.opponent.pick(result, len(self.actions))
                thought = f" (it expects {result.value:+.2f} for itself)"
            else:
                action = self.opponent.choose([self.state])[0]
        self._say(f"{self.opponent.name} plays {self.game.action_name(action)}{thought}", style="cyan")
        self._make(action)

    def _hint(self) -> None:
        with stderr().status("thinking"):
            action = self.opponent.choose([self.state])[0]
        self._say(f"{self.opponent.name} would play {self.game.action_name(action)}", style="cyan")

    def _undo(self) -> None:
        """Go back to where the person moved last."""
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

    def _make(self, action: int) -> None:
        self.state = self.game.apply(self.state, action)
        self.actions.append(action)
        self._show()

    def _show(self) -> None:
        self._say(f"\n{self.state}\n")

    def _say(self, text: str, *, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False)
