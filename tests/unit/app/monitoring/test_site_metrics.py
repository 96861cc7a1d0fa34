"""The state of the site's parts as metrics, and how the database is asked for it."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from app.db import Database, now
from app.mail import outbox
from app.mail.models import EmailState, OutboxEmail
from app.monitoring.site_metrics import SiteState, StorageState, site_metrics
from runners.wire.protocol import Health

AT = now()


def figures(site: SiteState) -> dict[str, float]:
    return {
        ",".join((sample.name, *sample.labels.values())): sample.value
        for family in site_metrics(site, AT)
        for sample in family.samples
        if sample.name != "lockstep_build_info"
    }


def test_a_part_that_does_not_respond_is_down_and_has_no_other_figure() -> None:
    assert figures(SiteState()) == {"lockstep_runner_up": 0, "lockstep_database_up": 0}


def test_a_runner_that_is_starting_is_not_up_but_has_figures() -> None:
    found = figures(SiteState(runner=Health(status="starting", max_sessions=4)))
    assert (found["lockstep_runner_up"], found["lockstep_sessions_limit"]) == (0, 4)


def test_a_runner_that_refuses_code_says_so() -> None:
    found = figures(SiteState(runner=Health(status="ready", refuses="no isolation")))
    assert (found["lockstep_runner_up"], found["lockstep_runner_runs_code"]) == (1, 0)


def test_the_outbox_has_a_figure_for_each_state_and_the_age_of_the_oldest() -> None:
    emails = outbox.OutboxState({"waiting": 2}, AT - timedelta(seconds=90))

    found = figures(SiteState(storage=StorageState(1000, emails)))

    assert {state: found[f"lockstep_outbox_emails,{state}"] for state in EmailState} == {
        "waiting": 2,
        "sending": 0,
        "failed": 0,
        "unconfirmed": 0,
    }
    assert found["lockstep_outbox_oldest_seconds"] == 90
    assert found["lockstep_database_size_bytes"] == 1000


def test_a_database_whose_disk_is_full_is_not_up_but_has_figures() -> None:
    found = figures(SiteState(storage=StorageState(1000, outbox.OutboxState({}, None), writable=False)))
    assert (found["lockstep_database_up"], found["lockstep_database_size_bytes"]) == (0, 1000)


def test_nothing_that_waits_is_zero_seconds_old() -> None:
    found = figures(SiteState(storage=StorageState(1000, outbox.OutboxState({"failed": 1}, None))))
    assert found["lockstep_outbox_oldest_seconds"] == 0


async def test_the_database_counts_its_emails_and_its_bytes(database: Database) -> None:
    assert (await outbox.read_state(database)) == outbox.OutboxState({}, None)
    async with database.writing() as session:
        for number in range(3):
            mail = OutboxEmail(id=str(number), recipient="a@example.org", subject="", text="", html="")
            mail.state, mail.last_error = EmailState.waiting, ""
            mail.created_at = mail.due_at = AT - timedelta(seconds=number)
            session.add(mail)
        await session.flush()
        await session.execute(update(OutboxEmail).where(OutboxEmail.id == "2").values(state=EmailState.failed))

    state = await outbox.read_state(database)

    assert (state.count, state.oldest_waiting) == ({"waiting": 2, "failed": 1}, AT - timedelta(seconds=1))
    assert await database.size_bytes() > 100_000
