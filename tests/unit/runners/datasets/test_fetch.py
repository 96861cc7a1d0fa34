"""A fetched data set is verified and complete; every failure is reported with a next step."""

from __future__ import annotations

import fcntl
import io
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.datasets.cache import Cache, CacheState
from runners.datasets.catalog import DataSet, DataSetError
from runners.datasets.download import DiskFull, DownloadProgress, FetchFailed, WrongContent
from runners.datasets.fetch import AllSourcesFailed, CacheNotWritable, Fetcher, FetchInProgress
from tests.unit.runners.datasets.conftest import Answer, Server, Tiny

NAME = "x_train.gz"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.datasets.download._PAUSE_S", 0.001)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "datasets")


def _whole(cache: Cache, tiny: Tiny) -> bool:
    cache.verify(tiny.data_set)
    return cache.glance(tiny.data_set)[0] is CacheState.whole


def _at(data_set: DataSet, *patterns: str) -> DataSet:
    files = {
        name: file.model_copy(update={"urls": tuple(pattern.format(name) for pattern in patterns)})
        for name, file in data_set.files.items()
    }
    return data_set.model_copy(update={"files": files})


def test_every_file_is_fetched_verified_and_readable_by_all(cache: Cache, tiny: Tiny, server: Server) -> None:
    said = io.StringIO()
    assert Fetcher(cache, server.url, DownloadProgress(said)).fetch(tiny.data_set) == 4
    assert _whole(cache, tiny)
    assert [line.endswith(" verified") for line in said.getvalue().splitlines()] == [True] * 4
    assert {path.name for path in cache.folder(tiny.data_set).iterdir()} == set(tiny.contents)
    assert stat.S_IMODE((cache.folder(tiny.data_set) / NAME).stat().st_mode) == 0o644
    assert stat.S_IMODE(cache.folder(tiny.data_set).stat().st_mode) == 0o755


def test_the_catalogs_addresses_are_used_in_order_without_a_source(cache: Cache, tiny: Tiny, server: Server) -> None:
    data_set = _at(tiny.data_set, f"{server.url}/gone/{{}}?", f"{server.url}/{{}}")
    assert Fetcher(cache).fetch(data_set) == 4
    assert server.asked[:2] == [f"/gone/{NAME}?", f"/{NAME}"]


def test_a_second_fetch_asks_for_nothing(cache: Cache, tiny: Tiny, server: Server) -> None:
    Fetcher(cache, server.url).fetch(tiny.data_set)
    server.asked.clear()
    assert Fetcher(cache, server.url).fetch(tiny.data_set) == 0
    assert server.asked == []


def test_only_the_damaged_file_is_fetched_again(cache: Cache, tiny: Tiny, server: Server) -> None:
    Fetcher(cache, server.url).fetch(tiny.data_set)
    (cache.folder(tiny.data_set) / NAME).write_bytes(b"damage")
    server.asked.clear()
    assert Fetcher(cache, server.url).fetch(tiny.data_set) == 1
    assert {path.rpartition("/")[2] for path in server.asked} == {NAME}
    assert _whole(cache, tiny)


@pytest.mark.parametrize("declare_length", [True, False])
def test_a_file_that_breaks_off_is_asked_for_again(
    cache: Cache, tiny: Tiny, server: Server, declare_length: bool
) -> None:
    server.script[NAME] = [Answer(cut_after=size, declare_length=declare_length) for size in (1000, 500)]
    Fetcher(cache, server.url).fetch(tiny.data_set)
    assert _whole(cache, tiny)


def test_a_file_that_breaks_off_again_and_again_is_given_up(cache: Cache, tiny: Tiny, server: Server) -> None:
    server.script[NAME] = [Answer(cut_after=500 * n) for n in (2, 1, 0, 1)]
    with pytest.raises(FetchFailed, match=r"the download stopped after 500 of .* Fetch again"):
        Fetcher(cache).fetch(_at(tiny.data_set, f"{server.url}/{{}}"))
    assert not cache.present(tiny.data_set)
    assert list((cache.root / ".incoming").rglob("*.part")) == []


def test_an_overloaded_server_is_asked_again(cache: Cache, tiny: Tiny, server: Server) -> None:
    server.script[NAME] = [Answer(status=503, body=b""), Answer(status=429, body=b"")]
    Fetcher(cache, server.url).fetch(tiny.data_set)
    assert _whole(cache, tiny)


def test_other_content_of_the_same_length_is_thrown_away(cache: Cache, tiny: Tiny, server: Server) -> None:
    server.files[NAME] = server.files[NAME][:-1] + b"\x00\x00"[:1].replace(server.files[NAME][-1:], b"\x01")
    with pytest.raises(DataSetError, match=r"is not the x_train\.gz that was expected: its SHA256 is"):
        Fetcher(cache, server.url).fetch(tiny.data_set)
    assert not cache.present(tiny.data_set)
    assert list((cache.root / ".incoming").rglob(f"{NAME}*")) == []


def test_a_page_of_a_proxy_is_not_downloaded(cache: Cache, tiny: Tiny, server: Server) -> None:
    page = Answer(body=b"<html>Please log in</html>")
    server.script[NAME] = [page, page]
    with pytest.raises(AllSourcesFailed, match=r"the server offers 26 bytes instead of") as caught:
        Fetcher(cache, server.url).fetch(tiny.data_set)
    assert str(caught.value).count("Try a mirror") == 1


def test_an_endless_answer_is_cut_at_the_known_size(cache: Cache, tiny: Tiny, server: Server) -> None:
    endless = Answer(body=bytes(5_000_000), declare_length=False)
    server.script[NAME] = [endless, endless]
    with pytest.raises(FetchFailed, match="it is longer than"):
        Fetcher(cache, server.url).fetch(tiny.data_set)
    assert list((cache.root / ".incoming").rglob("*.part")) == []


def test_a_missing_file_names_the_address_and_the_status(cache: Cache, tiny: Tiny, server: Server) -> None:
    del server.files["y_test.gz"]
    with pytest.raises(AllSourcesFailed) as caught:
        Fetcher(cache, server.url).fetch(tiny.data_set)
    assert f"{server.url}/fashion_mnist/y_test.gz: the server responded with status 404" in str(caught.value)
    assert f"{server.url}/y_test.gz: the server responded with status 404" in str(caught.value)
    assert not cache.present(tiny.data_set)  # three good files are not a data set
    server.files["y_test.gz"] = tiny.contents["y_test.gz"]
    server.asked.clear()
    Fetcher(cache, server.url).fetch(tiny.data_set)
    assert {path.rpartition("/")[2] for path in server.asked} == {"y_test.gz"}  # the three were kept
    assert _whole(cache, tiny)


def test_no_network_is_said_with_the_way_round_it(cache: Cache, tiny: Tiny) -> None:
    with pytest.raises(
        FetchFailed, match=r"no connection .* copy the files into a directory and use --source DIRECTORY"
    ):
        Fetcher(cache).fetch(tiny.data_set)


@pytest.mark.parametrize("inner", ["", "fashion_mnist"])
def test_a_folder_serves_as_a_source(cache: Cache, tiny: Tiny, tmp_path: Path, inner: str) -> None:
    tiny.put(tmp_path / "stick" / inner)
    Fetcher(cache, str(tmp_path / "stick")).fetch(tiny.data_set)
    assert _whole(cache, tiny)


def test_a_folder_that_lacks_the_file_is_named(cache: Cache, tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match=r"stick/fashion_mnist/x_train\.gz cannot be read \(No such file"):
        Fetcher(cache, str(tmp_path / "stick")).fetch(tiny.data_set)


@pytest.mark.parametrize("damage", [lambda good: good[:-1], lambda good: b"?" + good[1:]])
def test_a_wrong_file_in_a_folder_is_refused(
    cache: Cache, tiny: Tiny, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    folder = tiny.put(tmp_path / "stick")
    (folder / NAME).write_bytes(damage(tiny.contents[NAME]))
    with pytest.raises(WrongContent, match=r"stick/x_train\.gz is not the x_train\.gz that was expected"):
        Fetcher(cache, str(folder)).fetch(tiny.data_set)
    assert not cache.present(tiny.data_set)


def test_a_second_fetch_at_the_same_time_is_refused_with_the_firsts_number(
    cache: Cache, tiny: Tiny, server: Server
) -> None:
    refusals: list[DataSetError] = []

    def meanwhile(path: str) -> None:
        if path.endswith("y_test.gz") and not refusals:
            try:
                Fetcher(cache, server.url).fetch(tiny.data_set)
            except FetchInProgress as e:
                refusals.append(e)

    server.before = meanwhile
    Fetcher(cache, server.url).fetch(tiny.data_set)
    assert [str(e) for e in refusals] == [
        f"fashion_mnist is already being fetched by process {os.getpid()}. Wait for it to finish, then try again."
    ]
    assert _whole(cache, tiny)


def test_the_lock_of_a_process_that_died_does_not_hold(cache: Cache, tiny: Tiny, server: Server) -> None:
    path = cache.root / ".incoming" / "fashion_mnist.lock"
    path.parent.mkdir(parents=True)
    with path.open("w") as dead:
        fcntl.flock(dead, fcntl.LOCK_EX)
        dead.write("999999")
    Fetcher(cache, server.url).fetch(tiny.data_set)
    assert _whole(cache, tiny)


def test_who_may_only_read_the_cache_cannot_hold_up_a_fetch(cache: Cache, tiny: Tiny, server: Server) -> None:
    """Like a session, which sees the folder read-only."""
    Fetcher(cache, server.url).fetch(tiny.data_set)
    lock = cache.root / ".incoming" / "fashion_mnist.lock"
    assert lock.stat().st_mode & 0o777 == 0o200


def test_a_full_disk_is_named_before_anything_is_fetched(
    cache: Cache, tiny: Tiny, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.datasets.fetch.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(DiskFull, match=r"Not enough space in .*datasets: 0\.0 MB are needed"):
        Fetcher(cache, server.url).fetch(tiny.data_set)
    assert server.asked == []


def test_a_disk_that_fills_up_on_the_way_is_named(cache: Cache, tiny: Tiny, server: Server) -> None:
    """A real limit of this process on the size of files simulates the full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(DiskFull, match="more room is needed"):
            Fetcher(cache, server.url).fetch(tiny.data_set)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not cache.present(tiny.data_set)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, tiny: Tiny, server: Server) -> None:
    (tmp_path / "datasets").write_text("a file in the way")
    with pytest.raises(CacheNotWritable, match=r"cannot be written .* or set LOCKSTEP_DATA_DIR"):
        Fetcher(Cache(tmp_path / "datasets"), server.url).fetch(tiny.data_set)


def test_each_kind_of_failure_is_a_fetch_that_failed() -> None:
    assert issubclass(WrongContent, FetchFailed)
    assert issubclass(AllSourcesFailed, FetchFailed)
    assert not issubclass(DiskFull, FetchFailed)  # no other place helps
