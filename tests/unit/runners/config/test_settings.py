"""An operator's settings: invalid values are rejected before anything starts."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from runners.config.settings import (
    Bounds,
    InvalidRunnerSettings,
    Limits,
    RunnerSettings,
    describe_errors,
    main,
    to_environment,
)

NUMBERS = {
    variable: field
    for model, prefix in ((Limits, "LOCKSTEP_LIMITS__"), (RunnerSettings, "LOCKSTEP_"))
    for name, field in model.model_fields.items()
    if field.annotation in (int, float)
    for variable in [f"{prefix}{name.upper()}"]
}
NO_NUMBERS = ["much", "-1", "-0.5", "999999999999", "nan", "inf", "-inf", "1e400", "0x10", "1,000", "", " ", "true"]


@pytest.mark.parametrize("value", [*NO_NUMBERS, "0"])
@pytest.mark.parametrize("variable", sorted(NUMBERS))
def test_a_number_that_is_text_negative_zero_or_huge_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    (bounds,) = (m for m in NUMBERS[variable].metadata if isinstance(m, Bounds))
    if value == "0" and bounds.least == 0:
        return  # no kernel at all may be kept warm, say
    if value == "" and variable == "LOCKSTEP_MAX_SESSIONS":
        return  # Compose passes on what is not set as nothing
    monkeypatch.setenv(variable, value)

    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    kind = "whole number" if NUMBERS[variable].annotation is int else "number"
    possible = f"must be a {kind} from {bounds.least:,.12g} to {bounds.most:,.12g} ({bounds.unit})"
    assert list(describe_errors(refused.value)) == [f"{variable}: {possible}"]


@pytest.mark.parametrize("variable", sorted(NUMBERS))
def test_the_least_and_the_greatest_value_and_the_default_are_possible(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (bounds,) = (m for m in NUMBERS[variable].metadata if isinstance(m, Bounds))
    assert bounds.least <= NUMBERS[variable].default <= bounds.most
    for value in (bounds.least, bounds.most):
        monkeypatch.setenv(variable, f"{value:.12g}")
        RunnerSettings()


def test_every_limit_is_a_number_with_bounds() -> None:
    assert {f"LOCKSTEP_LIMITS__{name.upper()}" for name in Limits.model_fields} <= set(NUMBERS)
    assert all([m for m in field.metadata if isinstance(m, Bounds)] for field in NUMBERS.values())


def test_every_error_is_reported_without_the_invalid_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LIMITS__CPU_S", "hunter2")
    monkeypatch.setenv("LOCKSTEP_MAX_SESSIONS", "many")
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert sorted(describe_errors(refused.value)) == [
        "LOCKSTEP_LIMITS__CPU_S: must be a whole number from 1 to 86,400 (seconds)",
        "LOCKSTEP_MAX_SESSIONS: must be a whole number from 0 to 10,000 (sessions)",
    ]


def test_mistakes_in_all_settings_at_once_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {*(RunnerSettings.model_fields.keys() - {"data_dir", "limits"})}
    variables = {f"LOCKSTEP_{name.upper()}" for name in names | {f"limits__{name}" for name in Limits.model_fields}}
    for variable in variables:
        monkeypatch.setenv(variable, "?")

    with pytest.raises(ValidationError) as refusal:
        RunnerSettings()

    sentences = dict(line.split(": ", 1) for line in describe_errors(refusal.value))
    assert sentences.keys() == variables
    assert [sentence for sentence in sentences.values() if "Input" in sentence] == []


def test_a_misspelt_limit_is_no_setting_and_the_nearest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LIMITS__MEMROY_MB", "1000")
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert list(describe_errors(refused.value)) == [
        "LOCKSTEP_LIMITS__MEMROY_MB: there is no such setting; did you mean LOCKSTEP_LIMITS__MEMORY_MB"
    ]


def test_misspelled_names_and_invalid_values_are_listed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCKSTEP_MAX_SESIONS", "LOCKSTEP_LIMITS_MEMORY_MB", "LOCKSTEP_DEVICES", "LOCKSTEP_DATABASE_URL"):
        monkeypatch.setenv(name, "hunter2")
    with pytest.raises(InvalidRunnerSettings) as refused:
        RunnerSettings.read()

    assert str(refused.value).splitlines() == [
        "LOCKSTEP_LIMITS_MEMORY_MB: there is no such setting; did you mean LOCKSTEP_LIMITS__MEMORY_MB",
        "LOCKSTEP_MAX_SESIONS: there is no such setting; did you mean LOCKSTEP_MAX_SESSIONS",
        "LOCKSTEP_DEVICES: must be 'auto', 'simulate', 'gpu' or 'tpu'",
    ]


def test_run_as_a_program_it_names_what_cannot_be_used_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_LIMITS__CPU_CORES", "1.50")
    main()
    assert json.loads(capsys.readouterr().out)["LOCKSTEP_LIMITS__CPU_CORES"] == "1.5"
    monkeypatch.setenv("LOCKSTEP_LIMITS__MEMORY_MB", "lots")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().out.startswith("LOCKSTEP_LIMITS__MEMORY_MB: must be a whole number from 256 ")


def test_settings_listed_as_variables_set_a_runner_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(memory_mb=4096, run_s=0.5)
    ours = RunnerSettings(warm_keras=(2, 3), idle_s=2.5, devices="gpu", limits=limits)
    for variable, value in to_environment(ours).items():
        monkeypatch.setenv(variable, value)
    assert RunnerSettings() == ours
    assert len(to_environment(ours)) == len(RunnerSettings.model_fields) - 3 + len(Limits.model_fields)


def test_an_invalid_choice_is_answered_with_the_valid_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_DEVICES", "nonsense")
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert list(describe_errors(refused.value)) == ["LOCKSTEP_DEVICES: must be 'auto', 'simulate', 'gpu' or 'tpu'"]


def test_sessions_may_not_belong_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_SERVICE_UID", "0")
    with pytest.raises(ValidationError):
        RunnerSettings()


@pytest.mark.parametrize("topology", ["gpu:9", "tpu", ""])
def test_a_warm_topology_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, topology: str) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_TOPOLOGY", topology)
    with pytest.raises(ValidationError, match="possible"):
        RunnerSettings()


@pytest.mark.parametrize("topology", ["workers:2", "workers:2xgpu:2", "ps:2+1"])
def test_a_cluster_is_not_kept_ready_before_anybody_asks(monkeypatch: pytest.MonkeyPatch, topology: str) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_TOPOLOGY", topology)
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert list(describe_errors(refused.value)) == [
        "LOCKSTEP_WARM_TOPOLOGY: must be one machine such as gpu:4, tpu:8 or cpu: "
        "clusters are kept ready while they are in use"
    ]


@pytest.mark.parametrize(("written", "read"), [("2", (2,)), ("3,2", (3, 2)), (" 2 3 2", (2, 3))])
def test_the_kerases_that_start_with_the_runner(
    monkeypatch: pytest.MonkeyPatch, written: str, read: tuple[int, ...]
) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_KERAS", written)
    assert RunnerSettings().warm_keras == read


@pytest.mark.parametrize("written", ["", "4", "3;2", "keras"])
def test_a_keras_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_KERAS", written)
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    assert list(describe_errors(refused.value)) == ["LOCKSTEP_WARM_KERAS: must be 3, 2, or both, separated by a comma"]


@pytest.mark.parametrize(("name", "value"), [("DEVICES", "cuda"), ("SESSIONS_PER_GPU", "0")])
def test_a_word_about_devices_that_means_nothing_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"LOCKSTEP_{name}", value)
    with pytest.raises(ValidationError) as refused:
        RunnerSettings()
    (sentence,) = describe_errors(refused.value)
    assert sentence.startswith(f"LOCKSTEP_{name}: ")


def test_a_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LIMITS__MEMORY_MB", "4096")
    assert RunnerSettings().limits == Limits(memory_mb=4096)


def test_limits_do_not_change_under_a_session() -> None:
    with pytest.raises(ValidationError):
        Limits().memory_mb = 1  # type: ignore[misc]  # what is tested
