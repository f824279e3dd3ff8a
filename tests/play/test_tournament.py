"""Tournaments: groups and rotations, three seats, points, and the rating of known orders."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from windrow import TERMINAL, ConfigError, make_game
from windrow.play import RandomPlayer, play_match, play_tournament
from windrow.play.ratings import RatedGame, fit_ratings

AZUL = make_game("azul", players=3, scoring="margin")
CONNECT4 = make_game("connect4")


def test_three_players_in_three_seats() -> None:
    """Every opening in every rotation with the same dice; the order of strength is A, C, B from below."""
    result = play_tournament(AZUL, ["random", "rollout:200", "rollout:10"], num_games=24, seed=2)
    assert len(result.games) == 24
    seen = {game.players for game in result.games}
    assert seen == {tuple("ABC"), tuple("BCA"), tuple("CAB"), tuple("CBA"), tuple("BAC"), tuple("ACB")}
    for opening in range(8):
        games = [game for game in result.games if game.opening == opening]
        assert all(Counter(seats) == Counter("ABC") for seats in zip(*(game.players for game in games), strict=True))
        first_words = {game.moves.split()[0] for game in games}
        assert len(first_words) == 1  # the first deal
    for game in result.games:
        state = AZUL.state_from_moves(game.moves)
        assert AZUL.to_play(state) == TERMINAL and tuple(AZUL.returns(state)) == game.returns
    order = [row.letter for row in result.standings()]
    assert order == ["B", "C", "A"]
    best = result.standings()[0]
    assert best.elo > best.elo_error > 0 and best.score > 0.7
    wanted = fit_ratings([RatedGame(game.players, game.returns) for game in result.games], anchor="A")
    assert best.elo == wanted.elo["B"] and sum(row.wins for row in result.standings()) == pytest.approx(24)


def test_points_are_reported_where_a_game_counts_them() -> None:
    pair = play_match(make_game("backgammon"), "random", "random", num_games=8, stop_when_sure=False)
    assert pair.gain is not None and pair.gain.mean == pytest.approx(3 * sum(game.gain for game in pair.games) / 8)
    assert "points a game" in pair.table() and pair.to_dict()["gain"]["unit"] == "points"
    assert play_match(CONNECT4, "random", "random", num_games=4, stop_when_sure=False).gain is None


def test_more_players_than_seats_play_in_all_groups() -> None:
    result = play_tournament(CONNECT4, ["random", "rollout:10", "rollout:200"], num_games=50, seed=3)
    met = Counter(game.players for game in result.games)
    assert len(result.games) == 48 and set(met.values()) == {8} and len(met) == 6
    assert [row.letter for row in result.standings()] == ["C", "B", "A"]
    document = json.loads(json.dumps(result.to_dict()))
    assert document["standings"][0]["name"] == "rollout:200" and len(document["games"]) == 48


def test_a_tournament_is_the_same_again_and_with_any_number_of_games_at_once() -> None:
    many = play_tournament(AZUL, ["random", "uniform:2", "random"], num_games=9, seed=5)
    assert play_tournament(AZUL, ["random", "uniform:2", "random"], num_games=9, seed=5, max_concurrent=1) == many
    told: list[int] = []
    play_tournament(
        AZUL, ["random"] * 3, num_games=9, max_concurrent=3, on_progress=lambda found, _: told.append(len(found.games))
    )
    assert told == [3, 6, 9]


def test_equal_players_share() -> None:
    """The same player on all seats: every opening is one game, played three times."""
    result = play_tournament(AZUL, [RandomPlayer(seed=4) for _ in range(3)], num_games=9, seed=1)
    assert all(row.score == pytest.approx(0.5) and row.elo == pytest.approx(0) for row in result.standings())


def test_scores_of_azul_are_reported_whatever_its_returns_are() -> None:
    """Three players have scores, two a lead; both come from the boards at the end."""
    game = make_game("azul", players=3)
    result = play_tournament(game, ["uniform:8", "random", "random"], num_games=6, seed=1)
    for row in result.standings():
        own = [
            game.state_from_moves(one.moves).board.players[one.players.index(row.letter)].score for one in result.games
        ]
        assert row.gain is not None and row.gain.mean == pytest.approx(sum(own) / len(own))
    assert "points scored a game" in result.table()
    pair = play_match(make_game("azul"), "uniform:8", "random", num_games=4, stop_when_sure=False)
    leads = [one.lead for one in pair.games if one.lead is not None]
    assert pair.gain is not None and pair.gain.mean == pytest.approx(sum(leads) / 4) and len(leads) == 4
    first = make_game("azul").state_from_moves(pair.games[0].moves).board.players
    assert pair.games[0].first == "A" and leads[0] == first[0].score - first[1].score
    assert "points a game" in pair.table()


def test_impossible_tournaments_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes 3 to 26 players, not 2"):
        play_tournament(AZUL, ["random", "random"])
    with pytest.raises(ConfigError, match="openings_plies"):
        play_tournament(CONNECT4, ["random", "random"], openings_plies=-1)
