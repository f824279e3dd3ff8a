"""Checks of one position: every method, asked once and again, and whether asking or playing changes the state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np

from windrow.games.checking.fault import Kind
from windrow.games.checking.subject import FAILED, Subject, View, ask, short
from windrow.games.checking.values import compare, snapshot
from windrow.games.protocol import CHANCE, TERMINAL

NUM_SEEDS = 8
"""Outcomes drawn where they cannot be listed."""
_NUM_REPEATS = 32
"""How often a method is asked to find out whether it answers at random."""
_CHANCE_METHODS = {"listed": "chance_outcomes", "sampled": "sample_outcome"}
_FIELDS = tuple(field.name for field in fields(View))
_MAX_OUTCOME = 65535
_NUM_TRIED = 6
"""Moves tried in a position, besides the one that is played."""
_TOLERANCE = 1e-6
REMEDY = "return a new one, and copy what is nested in it before changing that"


class PositionChecker:
    """Looks at positions, and reports what is wrong with them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._rules = subject.rules
        self._known_names: set[int] = set()
        self._last_observation: tuple[Any, bytes] | None = None

    # --- One look ---------------------------------------------------------------------------------------------

    def look(self, state: Any, moves: Sequence[int], *, before: Any = None, is_first: bool = False) -> View | None:
        """Ask all methods about a state; None, with faults, if the answers make no sense.

        Args:
            state: the state.
            moves: what led there.
            before: a deep copy of it, to see which method changes it; None: do not look for that.
            is_first: report what is wrong with the answers; otherwise only exceptions.
        """
        subject = self._subject
        player = self._ask_player(state, moves)
        if player is None or not self._expect_same(before, state, "to_play", moves):
            return None
        legal = self._legal(state, moves, player, is_first=is_first)
        if legal is None or not self._expect_same(before, state, "legal_actions", moves):
            return None
        method = "observe" if player >= 0 else "returns" if player == TERMINAL else _CHANCE_METHODS[subject.chance]
        answer = getattr(self, f"_ask_{method}")(state, moves, is_first=is_first)
        if answer is FAILED or not self._expect_same(before, state, method, moves):
            return None
        facts: dict[str, Any] = {method: answer}
        if subject.has_hash:
            facts["hash"] = self._ask_hash(state, moves)
            if not self._expect_same(before, state, "hash", moves):
                return None
        if subject.has_render and is_first:
            text = subject.call("render", moves, state)
            if text is not FAILED and not isinstance(text, str):
                subject.fault("names", "render", f"gave {short(text)}, which is no text", moves)
            if not self._expect_same(before, state, "render", moves):
                return None
        return View(player, legal, **facts)

    def examine(self, state: Any, moves: Sequence[int]) -> View | None:
        """Look twice, with all checks; None if the game cannot go on from here."""
        before = snapshot(state, (self._rules,))
        num_faults = self._subject.report.num_faults
        view = self.look(state, moves, before=before, is_first=True)
        if view is None or self._subject.report.num_faults > num_faults:
            return view
        again = self.look(state, moves)
        if again is not None:
            difference = view.difference(again, self._subject.unstable)
            if difference is not None:
                self._report_unstable(*difference, moves)
        return view

    # --- Comparing --------------------------------------------------------------------------------------------

    def difference(self, view: View, now: View | None, *states: tuple[Any, Sequence[int]]) -> tuple[str, str] | None:
        """Where two views differ, as `View.difference` says, unless that is a method which answers at random.

        Args:
            view: one view.
            now: the other; None, if there is none because of a fault, differs in nothing.
            states: the states that were looked at, with the moves that led there; they are asked again and again.
        """
        while now is not None:
            found = view.difference(now, self._subject.unstable)
            if found is None or not any(self._is_unstable(found[0], *state) for state in states):
                return found
        return None

    def _is_unstable(self, method: str, state: Any, moves: Sequence[int]) -> bool:
        views = [self.look(state, moves) for _ in range(_NUM_REPEATS)]
        whole = [view for view in views if view is not None]
        for view in whole[1:]:
            if getattr(view, method) != getattr(whole[0], method):
                found = whole[0].difference(view, {*_FIELDS} - {method})
                self._report_unstable(method, "" if found is None else found[1], moves)
                return True
        return False

    def _report_unstable(self, method: str, answers: str, moves: Sequence[int]) -> None:
        kind: Kind = "hash" if method == "hash" else "randomness"
        seen = f"asked twice about the same state it gave {answers}"
        self._subject.fault(kind, method, seen, moves, f"print({ask(method)}, {ask(method)})")
        self._subject.unstable.add(method)

    def _expect_same(self, before: Any, state: Any, method: str, moves: Sequence[int], move: int | None = None) -> bool:
        """Report a method that has changed the state it was given."""
        if before is None:
            return True
        change = compare(before, state)
        if change == "none":
            return True
        call = ask(method) if move is None else f"game.{method}(state, {move})"
        code = f"before = copy.deepcopy(state)\n{call}\nprint(before, state)"
        if change == "value":
            seen = f"changed the state that it was given; {REMEDY if method == 'apply' else 'leave it as it is'}"
            self._subject.fault("mutation", method, seen, moves, f"import copy\n{code}")
            return False
        seen = "changed something inside of the state that it was given; that is right only if it is a cache"
        self._subject.note("mutation", method, seen, moves, f"import copy\n{code}")
        return True

    # --- Moves ------------------------------------------------------------------------------------------------

    def play(self, state: Any, view: View, move: int, moves: Sequence[int], draw: Random, *, is_close: bool) -> Any:
        """The state after `move`; `FAILED` if it cannot be had. With a close look, other moves are tried as well."""
        subject = self._subject
        before = snapshot(state, (self._rules,)) if is_close else None
        child = subject.apply(state, move, moves)
        if child is FAILED or not is_close:
            return child
        if not self._is_left_alone(before, state, view, move, moves):
            return FAILED
        twin = subject.apply(state, move, moves)
        if twin is FAILED:
            return FAILED
        played = (*moves, move)
        one, two = self.look(child, played), self.look(twin, played)
        difference = None if one is None else self.difference(one, two, (child, played), (twin, played))
        if difference is not None:
            method, answers = difference
            seen = f"{move} was played twice in the same state, and then {method} gave {answers}"
            code = f"print([{ask(method, f'game.apply(state, {move})')} for _ in range(2)])"
            blamed: tuple[Kind, str] = ("hash", "hash") if method == "hash" else ("randomness", "apply")
            subject.fault(*blamed, seen, moves, code)
            return FAILED
        others = [other for other in possible_moves(view) if other != move]
        tried = draw.sample(others, min(len(others), _NUM_TRIED))
        for other in tried:
            found = subject.apply(state, other, moves)
            if found is FAILED:
                continue
            if not self._expect_same(before, state, "apply", moves, other):
                return FAILED
            self._ask_player(found, (*moves, other))
        return child if self._is_left_alone(before, state, view, (tried or [move])[-1], moves) else FAILED

    def _is_left_alone(self, before: Any, state: Any, view: View, move: int, moves: Sequence[int]) -> bool:
        if not self._expect_same(before, state, "apply", moves, move):
            return False
        difference = self.difference(view, self.look(state, moves), (state, moves))
        if difference is not None:
            method, answers = difference
            seen = f"playing {move} changed the state that it was given: {method} gave {answers}; {REMEDY}"
            code = f"print({ask(method)})\ngame.apply(state, {move})\nprint({ask(method)})"
            self._subject.fault("mutation", "apply", seen, moves, code)
        return difference is None

    # --- Answers ----------------------------------------------------------------------------------------------

    def _ask_player(self, state: Any, moves: Sequence[int]) -> int | None:
        """Who is to move; None, with a fault, if there is no such player."""
        subject = self._subject
        player = subject.call_number("to_play", moves, state, kind="player")
        if player is FAILED:
            return None
        if player == CHANCE and subject.chance == "none":
            seen = "gave CHANCE, but the game has neither chance_outcomes nor sample_outcome"
            subject.fault("player", "to_play", seen, moves)
            return None
        if player in (CHANCE, TERMINAL) or 0 <= player < subject.num_players:
            return player
        seen = f"gave {player}; players are 0 to {subject.num_players - 1}, CHANCE is {CHANCE}, TERMINAL is {TERMINAL}"
        subject.fault("player", "to_play", seen, moves)
        return None

    def _legal(self, state: Any, moves: Sequence[int], player: int, *, is_first: bool) -> tuple[int, ...] | None:
        """What is legal, as far as it can be played; None if the game cannot go on."""
        subject = self._subject
        answer = subject.call("legal_actions", moves, state)
        if answer is FAILED:
            return None
        actions = self._to_numbers(answer, moves)
        if actions is None:
            return None
        inside = sorted({action for action in actions if 0 <= action < subject.num_actions})
        if is_first:
            self._judge_legal(actions, inside, player, moves)
        if player < 0:
            return tuple(actions)
        return tuple(inside) if inside else None

    def _to_numbers(self, answer: Any, moves: Sequence[int]) -> list[int] | None:
        subject = self._subject
        try:
            actions = list(answer)
        except TypeError:
            subject.fault("legality", "legal_actions", f"gave {short(answer)}, which is no sequence", moves)
            return None
        if actions and all(isinstance(action, (bool, np.bool_)) for action in actions):
            seen = f"gave truth values, {short(answer)}; return the numbers of what is legal, np.flatnonzero(mask)"
            subject.fault("legality", "legal_actions", seen, moves)
            return None
        if not all(type(action) is int for action in actions):
            actions = [subject.number("legal_actions", moves, action, "legality") for action in actions]
        return None if FAILED in actions else actions

    def _judge_legal(self, actions: list[int], inside: list[int], player: int, moves: Sequence[int]) -> None:
        subject = self._subject
        seen = ""
        if player == TERMINAL and actions:
            seen = f"gave {short(actions)}, but the game is over; return an empty list there"
        elif player == CHANCE and actions:
            seen = f"gave {short(actions)}, but chance is to move; outcomes are no actions: return an empty list there"
        elif player >= 0 and not actions:
            seen = (
                f"gave nothing, but player {player} is to move; if the game is over here, to_play must return "
                "TERMINAL, and otherwise a player who cannot move must be skipped, or be able to pass"
            )
        elif len(set(actions)) < len(actions):
            twice = next(action for action in actions if actions.count(action) > 1)
            seen = f"gave action {twice} more than once: {short(actions)}"
        elif len(inside) < len(actions):
            wrong = next(action for action in actions if not 0 <= action < subject.num_actions)
            seen = f"gave action {wrong}; actions are 0 to {subject.num_actions - 1}"
        elif actions != inside:
            seen = f"gave actions that do not ascend: {short(actions)}"
        elif subject.max_legal_actions is not None and len(actions) > subject.max_legal_actions:
            seen = f"gave {len(actions)} actions, but max_legal_actions is {subject.max_legal_actions}"
        if seen:
            subject.fault("legality", "legal_actions", seen, moves)
        elif subject.has_names:
            self._check_names(actions, moves)

    def _check_names(self, actions: list[int], moves: Sequence[int]) -> None:
        """Every name must be read back as its action; once per action."""
        subject = self._subject
        for action in [action for action in actions if action not in self._known_names]:
            self._known_names.add(action)
            name = subject.call("action_name", moves, action, code=f"game.action_name({action})")
            if name is FAILED:
                continue
            if not isinstance(name, str):
                seen = f"gave {short(name)} for action {action}, which is no text"
                subject.fault("names", "action_name", seen, moves, f"print(game.action_name({action}))")
                continue
            code = f"print(game.parse_action({name!r}))"
            back = subject.call("parse_action", moves, name, code=code)
            if back is not FAILED and back != action:
                seen = f"read {name!r}, the name of action {action}, as {short(back)}"
                subject.fault("names", "parse_action", seen, moves, code)

    def _ask_observe(self, state: Any, moves: Sequence[int], *, is_first: bool) -> Any:
        """The bytes of one row; None if there is something wrong with it."""
        answer = self._subject.call("observe", moves, state)
        if answer is FAILED:
            return FAILED
        if self._last_observation is not None and is_first:
            array, expected = self._last_observation
            row = self._subject.flatten(array)
            if isinstance(row, str) or row.tobytes() != expected:
                seen = "changed an array that it gave before, for another state; give a new array each time"
                self._subject.note("observation", "observe", seen, moves)
        row = self._subject.flatten(answer)
        if isinstance(row, str):
            if is_first:
                self._subject.fault("observation", "observe", row, moves)
            return None
        self._last_observation = (answer, row.tobytes())
        return row.tobytes()

    def _ask_returns(self, state: Any, moves: Sequence[int], *, is_first: bool) -> Any:
        """A tuple of values; None if there is something wrong with them."""
        subject = self._subject
        answer = subject.call("returns", moves, state)
        if answer is FAILED:
            return FAILED
        try:
            values = tuple(float(value) for value in np.asarray(answer, np.float64).reshape(-1))
        except (TypeError, ValueError):
            subject.fault("returns", "returns", f"gave {short(answer)}, which are no numbers", moves)
            return FAILED
        seen = ""
        if len(values) != subject.num_players:
            seen = (
                f"gave {len(values)} value{'s' if len(values) != 1 else ''} for {subject.num_players} players: "
                f"{short(answer)}; return one result for each, that of player 0 first"
            )
        elif not all(math.isfinite(value) for value in values):
            seen = f"gave {short(answer)}, which is not finite"
        elif not all(-1.0 <= value <= 1.0 for value in values):
            seen = f"gave {short(answer)}; values lie between -1 and 1"
        elif subject.is_zero_sum and abs(sum(values)) > _TOLERANCE:
            seen = (
                f"gave {short(answer)}, which do not sum to zero; a game in which that is right says zero_sum = False"
            )
        if seen and is_first:
            subject.fault("returns", "returns", seen, moves)
        return None if seen else values

    def _ask_chance_outcomes(self, state: Any, moves: Sequence[int], *, is_first: bool) -> Any:
        """Pairs of an outcome and its probability, as far as they can be played."""
        subject = self._subject
        answer = subject.call("chance_outcomes", moves, state)
        if answer is FAILED:
            return FAILED
        try:
            pairs = [(int(outcome), float(probability)) for outcome, probability in answer]
        except (TypeError, ValueError):
            seen = f"gave {short(answer)}; pairs of an outcome and its probability are needed"
            subject.fault("chance", "chance_outcomes", seen, moves)
            return FAILED
        outcomes, probabilities = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        seen = ""
        if not pairs:
            seen = "gave nothing, but chance is to move"
        elif len(set(outcomes)) < len(outcomes):
            seen = f"gave an outcome more than once: {short(outcomes)}"
        elif outcomes != sorted(outcomes):
            seen = f"gave outcomes that do not ascend: {short(outcomes)}"
        elif outcomes[0] < 0 or outcomes[-1] > _MAX_OUTCOME:
            seen = f"gave outcome {outcomes[0] if outcomes[0] < 0 else outcomes[-1]}; they are 0 to {_MAX_OUTCOME}"
        elif not all(probability > 0.0 for probability in probabilities):
            seen = f"gave a probability that is not above zero: {short(pairs)}"
        elif abs(math.fsum(probabilities) - 1.0) > _TOLERANCE:
            seen = f"gave probabilities that sum to {math.fsum(probabilities):.9g}, not to 1"
        elif subject.max_outcomes is not None and len(pairs) > subject.max_outcomes:
            seen = f"gave {len(pairs)} outcomes, but max_outcomes is {subject.max_outcomes}"
        if seen and is_first:
            subject.fault("chance", "chance_outcomes", seen, moves)
        return tuple(pair for pair in pairs if pair[1] > 0.0) or FAILED

    def _ask_sample_outcome(self, state: Any, moves: Sequence[int], *, is_first: bool) -> Any:
        """What chance does for the seeds 0, 1, ..."""
        subject = self._subject
        drawn: list[int] = []
        for seed in range(NUM_SEEDS):
            code = f"print(game.sample_outcome(state, {seed}))"
            number = subject.call_number("sample_outcome", moves, state, seed, kind="chance", code=code)
            if number is FAILED:
                return FAILED
            drawn.append(number)
        return tuple(drawn)

    def _ask_hash(self, state: Any, moves: Sequence[int]) -> int | None:
        number = self._subject.call_number("hash", moves, state, kind="hash")
        return None if number is FAILED else number


def possible_moves(view: View) -> list[int]:
    """What may be played: actions, or outcomes of chance."""
    if view.chance_outcomes is not None:
        return [outcome for outcome, _ in view.chance_outcomes]
    if view.sample_outcome is not None:
        return sorted(set(view.sample_outcome))
    return list(view.legal_actions)
