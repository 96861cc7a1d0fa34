"""Preparing happens beside the supervisor; failures are in its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog

from runners.datasets.background_prepare import ROUNDS, make_folder, prepare_in_background
from runners.datasets.catalog import read_catalog

FIRST = ROUNDS[:1]


async def test_data_sets_are_prepared_in_rounds_without_a_word(tmp_path: Path) -> None:
    make_folder(tmp_path / "datasets")
    with structlog.testing.capture_logs() as logs:
        await prepare_in_background(tmp_path / "datasets", (*FIRST, (0.01, ("boston_housing",))))
    assert logs == []
    prepared = tmp_path / "datasets" / ".prepared"
    assert {path.parent.name for path in prepared.glob("*/record.json")} == {
        *("fashion_mnist", "mnist", "boston_housing")
    }


def test_large_ones_wait_until_a_runner_has_lived_for_a_while() -> None:
    catalog = read_catalog()
    (pause_s, names), (later_s, rest) = ROUNDS
    assert (pause_s, later_s, rest) == (0, 60, ())
    assert sum(catalog[name].nbytes for name in names) < 120_000_000


async def test_a_damaged_data_set_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "fashion_mnist").mkdir()
    with structlog.testing.capture_logs() as logs:
        await prepare_in_background(tmp_path, FIRST)
    assert logs[0]["log_level"] == "warning"
    assert "fashion_mnist: refused, not prepared" in logs[0]["about"]


async def test_cancelling_ends_it_and_leaves_nothing_that_counts(tmp_path: Path) -> None:
    task = asyncio.create_task(prepare_in_background(tmp_path))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    assert not (tmp_path / ".prepared" / "fashion_mnist" / "record.json").exists()


def test_a_folder_that_cannot_be_made_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    make_folder(tmp_path / "file" / "datasets")
