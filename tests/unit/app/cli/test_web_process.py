"""What a web process sets up before it serves."""

from __future__ import annotations

import resource

from app.cli.web_process import raise_open_files_limit


def test_a_web_process_may_open_as_many_files_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most - 1, most))
    try:
        raise_open_files_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
