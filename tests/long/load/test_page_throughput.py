"""The benchmark of pages: its peers answer, and so does every piece of a signed-in learner's page.

Nothing is timed here: ``pace`` raises unless each connection was answered at every path.
"""

from __future__ import annotations

from pathlib import Path

import uvloop
from page_throughput import Target, make_site, pace, serving_peers, serving_site, targets_of


def test_everything_that_is_measured_answers(tmp_path: Path) -> None:
    site = make_site(tmp_path, users=5, comments=60, lessons=13)

    with serving_peers(tmp_path) as peer:
        uvloop.run(pace(Target("both", peer, ("/plain", "/jinja")), 0))
    with serving_site(site) as server:
        paths = {path: target for target in targets_of(site, server) for path in target.paths}
        whole = Target("all", server, tuple(paths), site.cookie)
        assert len(whole.paths) == 7, "the page, its pieces together, each piece, and comments"
        uvloop.run(pace(whole, 0))
