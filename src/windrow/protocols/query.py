"""A line of the analysis protocol taken apart: what is asked, checked, with every fault named by its field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from windrow.config import SearchConfig
from windrow.errors import ConfigError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.protocols.scheduler import check_config
from windrow.spelling import explain_unknown

Id: TypeAlias = "str | int"

_FIELDS = (
    *("id", "position", "moves", "turns", "num_simulations", "time_limit_s", "settings", "report_every_s"),
    *("priority", "max_moves", "max_line", "include_untried"),
)
ACTIONS: dict[str, tuple[str, ...]] = {
    "query_version": (),
    "query_models": (),
    "query_stats": (),
    "clear_cache": (),
    "terminate": ("terminate_id", "turns"),
    "terminate_all": ("turns",),
}
"""What can be asked beside an analysis, and the fields it has beside `id` and `action`."""

KATAGO_FIELDS = {
    "analyzeTurns": "turns",
    "turnNumbers": "turns",
    "maxVisits": "num_simulations",
    "maxTime": "time_limit_s",
    "overrideSettings": "settings",
    "reportDuringSearchEvery": "report_every_s",
    "analysisPVLen": "max_line",
    "initialStones": "position",
    "terminateId": "terminate_id",
}
"""KataGo's words for what windrow has too; docs/protocols.md shows them."""

_SERVER_SETTINGS = (
    *("engine", "max_memory", "cache_memory", "max_batch", "pipeline", "num_threads", "num_workers"),
    *("max_wait_ms", "max_inflight_batches", "max_restarts", "worker_timeout_s", "trees_per_root"),
)
_DEFAULT_LINE = 15
_MIN_REPORT_S = 0.01
_MAX_INTEGER = 2**31 - 2


class QueryError(WindrowError, ValueError):
    """A query that cannot be answered.

    field: which of its fields is to blame; None if it is none.
    query_id: whose answer the error is; None if that cannot be said.
    """

    def __init__(self, message: str, *, field: str | None = None, query_id: Id | None = None) -> None:
        super().__init__(message)
        self.field, self.query_id = field, query_id


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do other than an analysis.

    given: the query as it came, which the answer repeats.
    turns: of `terminate` and `terminate_all`; None: all.
    """

    name: str
    given: dict[str, Any]
    terminate_id: Id | None = None
    turns: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Positions to analyse.

    positions: turn numbers, and the positions there, in each of which a player is to move. The turn is None where moves
        were given as a string, which are not counted.
    """

    id: Id
    positions: list[tuple[int | None, State]]
    config: SearchConfig
    priority: int
    report_every_s: float | None
    max_moves: int | None
    max_line: int | None
    include_untried: bool


def read_query(text: str, game: CoreGame, base: SearchConfig) -> Query | Action:
    """What a line asks for.

    Args:
        text: the line.
        game: the rules.
        base: settings for what the query does not say.

    Raises:
        QueryError: it says which field is wrong and why.
    """
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"not JSON: {error or 'nested too deeply'}") from None
    if not isinstance(given, dict):
        raise QueryError(f"a query is a JSON object, not {type(given).__name__}")
    fields = cast("dict[str, Any]", given)
    query_id = fields.get("id")
    if isinstance(query_id, bool) or not isinstance(query_id, str | int):
        raise QueryError("every query needs an id, a string or a whole number", field="id")
    try:
        return _read_action(fields) if "action" in fields else _read_analysis(fields, query_id, game, base)
    except QueryError as error:
        error.query_id = query_id
        raise


# --- Actions ------------------------------------------------------------------------------------------------------


def _read_action(fields: dict[str, Any]) -> Action:
    name = fields["action"]
    if not isinstance(name, str) or name not in ACTIONS:
        known = explain_unknown(str(name)[:80], ACTIONS, what="actions")
        raise QueryError(f"there is no action {name!r:.80}. {known}", field="action")
    _check_names(fields, ("id", "action", *ACTIONS[name]))
    turns = fields.get("turns")
    if turns is not None:
        turns = frozenset(_integers(turns, "turns"))
    terminate_id = fields.get("terminate_id")
    if name == "terminate" and (isinstance(terminate_id, bool) or not isinstance(terminate_id, str | int)):
        raise QueryError("terminate needs the id of the query to end", field="terminate_id")
    return Action(name, fields, terminate_id, turns)


# --- Analyses -----------------------------------------------------------------------------------------------------


def _read_analysis(fields: dict[str, Any], query_id: Id, game: CoreGame, base: SearchConfig) -> Query:
    _check_names(fields, _FIELDS)
    config = _read_config(fields, base)
    states = _read_states(fields, game)
    return Query(
        id=query_id,
        positions=_choose(fields, game, states),
        config=config,
        priority=_integer(fields, "priority", -_MAX_INTEGER, default=0),
        report_every_s=_seconds(fields, "report_every_s", _MIN_REPORT_S),
        max_moves=None if fields.get("max_moves") is None else _integer(fields, "max_moves", 1),
        max_line=_integer(fields, "max_line", 1, default=_DEFAULT_LINE),
        include_untried=_flag(fields, "include_untried"),
    )


def _check_names(fields: dict[str, Any], known: Sequence[str]) -> None:
    for name in fields:
        if name in known:
            continue
        if KATAGO_FIELDS.get(name) in known:
            raise QueryError(f"{name}: windrow says {KATAGO_FIELDS[name]}", field=name)
        unknown = explain_unknown(name[:80], known, what="fields")
        raise QueryError(f"there is no field {name!r:.80}. {unknown}", field=name)


def _read_config(fields: dict[str, Any], base: SearchConfig) -> SearchConfig:
    settings = fields.get("settings", {})
    if not isinstance(settings, dict):
        raise QueryError('settings is an object of settings by name, such as {"c_puct": 2}', field="settings")
    changes = cast("dict[str, Any]", settings)
    known = SearchConfig.setting_names()
    for name in changes:
        if name not in known:
            unknown = explain_unknown(name[:80], known, what="settings")
            raise QueryError(f"there is no setting {name!r:.80}. {unknown}", field="settings")
        if name in _SERVER_SETTINGS:
            raise QueryError(f"{name} is for all queries: set it when the program is started", field="settings")
        if name in ("num_simulations", "time_limit_s"):
            raise QueryError(f"{name} is a field of the query itself", field="settings")
    try:
        config = base.replace(**changes)
        check_config(config)
    except ConfigError as error:
        raise QueryError(str(error), field="settings") from None
    budget, limit = fields.get("num_simulations"), fields.get("time_limit_s")
    if budget is None and limit is None:
        return config
    try:
        # Time alone is a budget, too.
        return config.replace(num_simulations=budget, time_limit_s=limit)
    except ConfigError as error:
        field = "num_simulations" if "num_simulations" in str(error) else "time_limit_s"
        raise QueryError(str(error), field=field) from None


def _read_states(fields: dict[str, Any], game: CoreGame) -> list[State] | State:
    """The position after every move, that before the first of all included; or the last one only.

    Only that can be had of a string without anything between the moves: where one ends, the game alone knows.
    """
    position, moves = fields.get("position", ""), fields.get("moves", [])
    if not isinstance(position, str):
        raise QueryError("position is a string of the moves that lead to it", field="position")
    try:
        state = game.state_from_moves(position)
    except WindrowError as error:
        raise QueryError(str(error), field="position") from None
    if isinstance(moves, str):
        try:
            return game.state_from_moves(f"{position} {moves}" if position else moves)
        except WindrowError as error:
            raise QueryError(str(error), field="moves") from None
    if not isinstance(moves, list):
        raise QueryError("moves is a list of moves, or a string of them", field="moves")
    states = [state]
    for number, move in enumerate(cast("list[Any]", moves), start=1):
        if isinstance(move, bool) or not isinstance(move, str | int):
            raise QueryError(f"move {number} is not a name or a number: {move!r:.80}", field="moves")
        try:
            states.append(_after(game, states[-1], move))
        except WindrowError as error:
            raise QueryError(f"move {number}, {move!r:.80}: {error}", field="moves") from None
    return states


def _after(game: CoreGame, state: State, move: str | int) -> State:
    """The position after a move, or after what chance did, by name or by number."""
    if isinstance(move, str):
        move = game.parse_move(state, move)
    return game.apply(state, move)


def _choose(fields: dict[str, Any], game: CoreGame, states: list[State] | State) -> list[tuple[int | None, State]]:
    """The positions to analyse, each with its turn."""
    turns = fields.get("turns")
    if not isinstance(states, list):
        if turns is not None:
            raise QueryError("turns count moves: give moves as a list, not as a string", field="turns")
        _check_searchable(game, states, "after the moves", "moves")
        return [(None, states)]
    if turns == "all":
        return [(turn, state) for turn, state in enumerate(states) if game.to_play(state) >= 0]
    if turns is None:
        _check_searchable(game, states[-1], "after the moves", "moves")
        return [(len(states) - 1, states[-1])]
    chosen = _integers(turns, "turns", hint=', or "all"')
    for turn in chosen:
        if not 0 <= turn < len(states):
            raise QueryError(f"turn {turn} does not exist; there are 0 to {len(states) - 1}", field="turns")
        _check_searchable(game, states[turn], f"at turn {turn}", "turns")
    return [(turn, states[turn]) for turn in dict.fromkeys(chosen)]


def _check_searchable(game: CoreGame, state: State, where: str, field: str) -> None:
    player = game.to_play(state)
    if player == TERMINAL:
        raise QueryError(f"there is nothing to analyse {where}: the game is over.\n{state}", field=field)
    if player == CHANCE:
        raise QueryError(f"chance is to move {where}: add its outcome to the moves.\n{state}", field=field)


def _integers(value: Any, field: str, *, hint: str = "") -> list[int]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [None]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise QueryError(f"{field} is a list of whole numbers{hint}, not {value!r:.80}", field=field)
    return items


def _integer(fields: dict[str, Any], field: str, low: int, *, default: int | None = None) -> int:
    value = fields.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _MAX_INTEGER:
        raise QueryError(f"{field} is a whole number from {low} to {_MAX_INTEGER}, not {value!r:.80}", field=field)
    return value


def _seconds(fields: dict[str, Any], field: str, low: float) -> float | None:
    value = fields.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= 1e9:
        raise QueryError(f"{field} is a number of seconds of at least {low}, not {value!r:.80}", field=field)
    return float(value)


def _flag(fields: dict[str, Any], field: str) -> bool:
    value = fields.get(field, False)
    if not isinstance(value, bool):
        raise QueryError(f"{field} is true or false, not {value!r:.80}", field=field)
    return value
