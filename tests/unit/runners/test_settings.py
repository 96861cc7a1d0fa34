"""An operator's settings: what is no limit is refused before anything starts."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from runners.settings import Limits, RunnerSettings


@pytest.mark.parametrize("value", ["much", "-1", "0", "999999999999", "nan", "inf", "1e400", ""])
@pytest.mark.parametrize("name", list(Limits.model_fields))
def test_a_limit_that_is_text_negative_zero_or_huge_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"LOCKSTEP_LIMITS__{name.upper()}", value)

    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert refused.value.errors()[0]["loc"] == ("limits", name)


@pytest.mark.parametrize("value", ["many", "-1", "99999999999"])
@pytest.mark.parametrize(
    "name", ["max_sessions", "sessions_per_learner", "runs_per_session", "idle_s", "warm_kernels", "service_uid"]
)
def test_a_setting_of_the_node_is_refused_the_same_way(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", value)

    with pytest.raises(ValidationError):
        RunnerSettings()


def test_sessions_may_not_belong_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_SERVICE_UID", "0")
    with pytest.raises(ValidationError):
        RunnerSettings()


@pytest.mark.parametrize("topology", ["gpu:9", "tpu", ""])
def test_a_warm_topology_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, topology: str) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_TOPOLOGY", topology)
    with pytest.raises(ValidationError, match="possible"):
        RunnerSettings()


def test_a_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LIMITS__MEMORY_MB", "4096")
    assert RunnerSettings().limits == Limits(memory_mb=4096)


def test_limits_do_not_change_under_a_session() -> None:
    with pytest.raises(ValidationError):
        Limits().memory_mb = 1  # type: ignore[misc]
