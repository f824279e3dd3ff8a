"""
The native core of windrow: games, trees and the forest. Private; use the windrow package.
"""

from typing import Annotated

import numpy
from numpy.typing import NDArray


class NativeGame:
    """A built-in game over states of bytes; made by `make_game`."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> dict[str, int | str]:
        """The options in force, defaults included."""

    @property
    def num_players(self) -> int: ...

    @property
    def num_values(self) -> int:
        """
        1 if values are of the player to move alone, else the number of players.
        """

    @property
    def chance(self) -> str:
        """'none', 'listed' or 'sampled'."""

    @property
    def num_actions(self) -> int: ...

    @property
    def state_bytes(self) -> int: ...

    @property
    def num_symmetries(self) -> int: ...

    @property
    def observation(self) -> list[tuple[str, list[int]]]:
        """The parts of an observation row, in order: name and shape."""

    def initial_state(self) -> bytes:
        """The state in which a game begins."""

    def to_play(self, state: bytes) -> int:
        """The player to move, -1 for chance, -2 for a finished game."""

    def legal_actions(self, state: bytes) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """int32, ascending; empty in a finished game."""

    def apply(self, state: bytes, move: int) -> bytes:
        """
        The state after an action or an outcome of chance; ValueError if that is not possible here.
        """

    def chance_outcomes(self, state: bytes) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """What may happen, ascending, and how likely it is."""

    def sample_outcome(self, state: bytes, seed: int) -> int:
        """An outcome drawn by the game itself."""

    def returns(self, state: bytes) -> Annotated[NDArray[numpy.float32], dict(shape=(None,))]:
        """float32, one value per player; ValueError if the game is not over."""

    def observe(self, state: bytes) -> Annotated[NDArray[numpy.float32], dict(shape=(None,))]:
        """float32, one row, seen by the player to move."""

    def play_many(self, initial: bytes, moves: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None))]:
        """
        uint8 [moves + 1, state_bytes]: the states along one game; ValueError names the ply of an illegal move.
        """

    def observe_many(self, states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """float32 [n, floats]: the rows of `states` [n, state_bytes]."""

    def to_play_many(self, states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int8], dict(shape=(None,))]:
        """int8 [n], as `to_play` says."""

    def legal_many(self, states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.bool_], dict(shape=(None, None))]:
        """bool [n, A]: which actions are legal; none in a finished game."""

    def hash(self, state: bytes) -> tuple[int, int]:
        """The low and the high 64 bits; equal positions have equal hashes."""

    def symmetry(self, index: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """
        The permutations of actions and of observation rows; 0 is the identity.
        """

    def render(self, state: bytes) -> str:
        """The position as text."""

    def score(self, state: bytes) -> float | None:
        """
        By how many points player 0 leads; None in a game that does not count points so.
        """

    def action_name(self, action: int) -> str:
        """The name people use for `action`."""

    def outcome_name(self, outcome: int) -> str:
        """The name people use for an outcome of chance."""

    def parse_outcome(self, text: str) -> tuple[int, int]:
        """As `parse_action`, for outcomes of chance."""

    def parse_action(self, text: str) -> tuple[int, int]:
        """
        The action named at the front of `text` and how many characters its name has; (-1, 0) if there is none.
        """

    @property
    def names_depend_on_state(self) -> bool:
        """
        Whether `move_name` and `parse_move` differ from `action_name` and `parse_action`.
        """

    def move_name(self, state: bytes, action: int) -> str:
        """The name people use for `action` in this position."""

    def parse_move(self, state: bytes, text: str) -> tuple[int, int]:
        """As `parse_action`, for the names that `move_name` gives."""

    def count_sequences(self, state: bytes, depth: int) -> int:
        """
        How many sequences of `depth` moves there are; in chess draws end none (perft). Only without chance.
        """

def make_game(name: str, options: dict[str, int | str]) -> NativeGame:
    """
    The built-in game of that name; ValueError for an unknown name, option or value.
    """

def game_names() -> list[str]:
    """The names of the built-in games."""

class PredictionCache:
    """What the evaluator said about positions. See cpp/prediction_cache.h."""

    def __init__(self, max_bytes: int, *, half_precision: bool = False, place_bits: int = 64, canonical: bool = False) -> None: ...

    @property
    def max_bytes(self) -> int: ...

    def clear(self) -> None: ...

    def counters(self) -> dict[str, int]: ...

    def find_rows(self, keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], version: int, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], found: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Fills in the rows [K, n] and values [K] of the keys [K, 2] it knows and says in `found` [K] which.
        """

    def insert_rows(self, keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], version: int, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Remembers rows [K, n] and values [K] under keys [K, 2]."""

class GameFault(RuntimeError):
    pass

class BadEvaluation(RuntimeError):
    pass

class Batch:
    """Leaves that are out for evaluation."""

    @property
    def num_rows(self) -> int:
        """How many observations were written."""

class CoreEvaluator:
    """An evaluator that lives in the core. See cpp/evaluator.h."""

def uniform_evaluator(game: NativeGame) -> CoreEvaluator:
    """Uniform priors and value 0."""

def hash_evaluator(game: NativeGame, seed: int) -> CoreEvaluator:
    """`windrow.evaluators.HashEvaluator`."""

def rollout_evaluator(game: NativeGame, num_rollouts: int, seed: int) -> CoreEvaluator:
    """`windrow.evaluators.RolloutEvaluator`."""

class Forest:
    """Many trees, grown by select, complete and cancel. See cpp/forest.h."""

    def __init__(self, game: NativeGame, num_trees: int, *, c_puct: float, c_puct_growth: float, c_puct_base: float, value_scale: str, in_flight: str, virtual_loss: float, first_play: tuple[bool, float], root_first_play: tuple[bool, float], proves: bool, share_collisions: bool, leaves_per_tree: int, max_depth: int, dirichlet_alpha: float, dirichlet_fraction: float, root_policy_temperature: float, gumbel_considered: int, gumbel_scale: float, gumbel_visit_offset: float, gumbel_value_scale: float, improves_interior: bool, lcb_deviations: float, seed: int, num_threads: int, spin_us: int, max_memory: int, cache: PredictionCache | None) -> None: ...

    @property
    def num_trees(self) -> int: ...

    @property
    def num_batches_out(self) -> int: ...

    @property
    def num_threads(self) -> int: ...

    def select(self, observations: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, max_leaves: int, first: int, last: int, overlap: bool = False) -> Batch:
        """
        Marks the next simulations in flight and writes their leaves' observations, unless None is given for them. A batch of no rows is already complete.
        """

    def complete(self, batch: Batch, logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]) -> None:
        """Expands the leaves, backs the simulations up, clears the marks."""

    def grow(self, evaluator: CoreEvaluator, max_leaves: int, first: int, last: int, *, max_batch: int, patience_s: float) -> tuple[bool, int, float, int, int]:
        """
        Selects, evaluates and completes until the trees have finished, one of them has, or `patience_s` is over. Returns whether all have finished, the rows that the batches had room for, and the evaluator's seconds, calls and rows.
        """

    def cancel(self, batch: Batch) -> None:
        """Clears the marks only."""

    def stop(self) -> None:
        """
        Ends all searches: no more simulations are selected. Roots that have no evaluation still are.
        """

    def cancel_all(self) -> None:
        """Cancels every batch that is out."""

    def states(self, batch: Batch) -> NDArray[numpy.uint8]:
        """The states of the leaves of a batch, [rows, state_bytes]."""

    def has_work(self, first: int, last: int) -> bool:
        """Whether some tree in [first, last) has simulations left to select."""

    def seconds(self) -> tuple[float, float, float]:
        """Seconds spent so far in select, encode and complete."""

    def reset_many(self, trees: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Plants trees anew at `states` [trees, state_bytes]."""

    def uproot_many(self, trees: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Empties trees: nothing is selected until they are planted again."""

    def advance_many(self, trees: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], moves: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Moves each root along its action, or its outcome of chance: all of them, or none. Trees are given once.
        """

    def begin_many(self, trees: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], num_simulations: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], explores: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], model_version: int) -> None:
        """
        Starts a search of each tree while others go on; `keys` and `counts` are the keys of their random numbers, without `explores` there is no noise at the root, `model_version` is part of the cache's keys.
        """

    def take_finished(self) -> NDArray[numpy.int32]:
        """The trees whose search has ended since the last call, ascending."""

    def root_states(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.uint8]:
        """The positions at the roots, [trees, state_bytes]."""

    def roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]:
        """
        Visits, priors and Q [trees, A], and mean values for the player to move [trees].
        """

    def proofs(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.uint8]]:
        """
        Proven values [trees] and moves to the end, the same of every action [trees, A], and which actions may be played [trees, A]; NaN where a value is open.
        """

    def player_values(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.float32]:
        """
        Mean values by player [trees, players], if there is a value per player.
        """

    def lines(self, trees: NDArray[numpy.int32]) -> list[list[int]]:
        """The most visited line of each tree."""

    def gumbel_roots(self, trees: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float32], NDArray[numpy.int32]]:
        """Improved policies [trees, A] and the actions to play [trees]."""

    def surest_actions(self, trees: NDArray[numpy.int32]) -> NDArray[numpy.int32]:
        """The actions of the highest lower confidence bounds [trees]."""

    def choose_moves(self, trees: NDArray[numpy.int32], temperatures: NDArray[numpy.float64], keys: NDArray[numpy.uint32], counts: NDArray[numpy.uint32]) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.uint8]]:
        """
        After searches: policies to learn [trees, A], values for the player to move [trees], actions to play [trees] and whether the roots are proven [trees]. `keys` and `counts` are the keys of the draws.
        """

    def totals(self, trees: NDArray[numpy.int32]) -> dict[str, int]:
        """What the searches of `trees` did since they began, summed."""

    def node(self, tree: int, moves: list[int]) -> NodeView | None:
        """
        The node that `moves` (actions and outcomes of chance) lead to from the root; None if it was never reached.
        """

    def num_in_flight(self, tree: int) -> int:
        """
        The sum of all in-flight marks of a tree; zero while nothing is out. Walks the whole tree.
        """

class NodeView:
    """
    A copy of one node's statistics; arrays are over its legal actions, ascending.
    """

    @property
    def kind(self) -> str:
        """'new', 'waiting', 'expanded', 'over' or 'chance'."""

    @property
    def to_play(self) -> int: ...

    @property
    def visits(self) -> int:
        """
        N(s): 1 + the sum of edge_visits once expanded, else 0; the sum alone where chance is to move.
        """

    @property
    def in_flight(self) -> int:
        """I(s)."""

    @property
    def is_proven(self) -> bool:
        """Whether `value` is exact, in a search that proves."""

    @property
    def distance(self) -> int:
        """Of a proven node, moves to the end of the game; else 0."""

    @property
    def value(self) -> float:
        """
        The evaluation or proven value, for the player to move; for player 0 if the game is over or chance moves.
        """

    @property
    def value_sum(self) -> float:
        """
        The evaluation and all that came through, for the player to move; for player 0 where chance is.
        """

    @property
    def player_value_sums(self) -> list[float]:
        """The same by player, if there is a value per player."""

    @property
    def actions(self) -> NDArray[numpy.int64]:
        """
        Where chance is to move: its outcomes, or those drawn so far if they cannot be listed.
        """

    @property
    def priors(self) -> NDArray[numpy.float32]:
        """Where chance is to move: the probabilities, 0 if they are not known."""

    @property
    def edge_visits(self) -> NDArray[numpy.int32]: ...

    @property
    def edge_value_sums(self) -> NDArray[numpy.float64]:
        """W(s,a), for the player to move at this node."""

    @property
    def edges_in_flight(self) -> NDArray[numpy.int32]: ...

    @property
    def edges_proven(self) -> NDArray[numpy.uint8]:
        """1 where the child is proven, else 0."""

def uniforms(seed: int, trees: NDArray[numpy.uint32], counts: NDArray[numpy.uint32], purpose: int, lane: int) -> NDArray[numpy.float64]:
    """The first number of many streams; `windrow.numerics.uniforms`."""

def evaluate_by_rollout(game: NativeGame, states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, num_rollouts: int, seed: int) -> NDArray[numpy.float32]:
    """
    The mean result of random games from each state, for the player to move there; [n, players] if there is a value per player, that player first.
    """

def foreign_game(name: str, facts: dict[str, int], functions: dict[str, int], observation: list[tuple[str, list[int]]], symmetries: list[tuple[list[int], list[int]]], owner: object) -> NativeGame:
    """
    A game of compiled functions, by their addresses; see cpp/game.h for their signatures. `owner` keeps them alive.
    """

def python_game(adapter: object) -> NativeGame:
    """
    The core's view of a game in Python; `windrow.games.python_game` makes it. Its states are references.
    """

def take_error(game: NativeGame) -> BaseException | None:
    """What a game in Python raised last, once."""

def objects_of(references: NDArray[numpy.uint64]) -> list[object]:
    """The states behind references that a forest gave and still holds."""

class Connect4Solver:
    """Perfect play in Connect-4. See cpp/solver/connect4_solver.h."""

    def __init__(self, game: NativeGame, max_bytes: int) -> None: ...

    def rate_moves(self, state: bytes, *, is_score: bool, max_nodes: int | None = None, timeout_s: float | None = None) -> list[tuple[int, int]]:
        """
        Every legal action with its score, or with the sign of it; RuntimeError beyond a limit.
        """

    def solve(self, state: bytes, *, is_score: bool, max_nodes: int | None = None, timeout_s: float | None = None) -> int:
        """
        The score for the player to move, or the sign of it; RuntimeError beyond a limit.
        """

    @property
    def num_nodes(self) -> int:
        """Positions visited so far."""
