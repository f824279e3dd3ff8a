"""The page: play against a search and watch it think, explore its tree, follow a training run.

An edge like the command line: files without a build step, and a server that turns messages into calls of `Search`.
Needs the `web` extra, which loads when a server is made. From the bottom up:

    limits, requests, access    how much, in which form, from whom
    pictures, positions, trees  a position, a game and a search tree as JSON
    evaluation, thinking        evaluators for many, many searches on few threads
    run_data, run_page          a run's folder, and what its page is told of it
    session, training           what answers one page
    report                      the page of a run as one file, without a server
    guard, app, serving         HTTP around it
"""

from windrow.web.report import write_report

__all__ = ["write_report"]
