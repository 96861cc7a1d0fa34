"""Runs over HTTP: JSON and a live stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response

from app.accounts.dependencies import OptionalLearnerId
from app.accounts.disabled_accounts import DisabledAccountsDep
from app.runs import event_log
from app.runs.dispatcher import RequestedQuotaOwner, RunDispatcherDep, VisitorAddress
from app.runs.lesson_lookup import LessonLookupDep
from app.runs.machines import cell_machines, choose_machine
from app.runs.queue_position import look_up_position
from app.runs.service import count_runs_ahead, get_run, latest_runs
from app.runs.views import RunIn, RunOut, RunsOut, run_out
from app.web.access import Access
from app.web.client_network import ClientAddress
from app.web.security_headers import NO_STORE
from app.web.sse import event_stream

_MAX_EVENTS = 5000
_MAX_SEQ = 2**31 - 1
AfterSeq = Annotated[int, Query(ge=0, le=_MAX_SEQ)]
LessonKeyQuery = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
"""The database rejects text with a NUL."""


async def _set_no_store(response: Response) -> None:
    """Browsers must not cache what a learner wrote or ran: the next person at the computer may be someone else."""
    response.headers.update(NO_STORE)


router = APIRouter(dependencies=[Depends(_set_no_store)], tags=[Access.learner])


@router.post("/runs", status_code=202, name="create_run")
async def create_run(
    asked: RunIn,
    owner: RequestedQuotaOwner,
    address: ClientAddress,
    lookup: LessonLookupDep,
    dispatcher: RunDispatcherDep,
) -> RunOut:
    lesson = await lookup.lesson(asked.lesson)
    cell = await lookup.cell(lesson, owner.learner, asked.cell)
    machine = choose_machine(cell_machines(cell), asked.topology, asked.keras)
    dispatcher.admit(address, owner.learner)
    return run_out(*await dispatcher.dispatch(owner, lesson, cell, machine, asked.code))


@router.get("/runs", name="list_runs")
async def list_runs(lesson: LessonKeyQuery, learner: OptionalLearnerId, dispatcher: RunDispatcherDep) -> RunsOut:
    if learner is None:
        return RunsOut(runs=[])
    async with dispatcher.db.session() as session:
        runs = list(await latest_runs(session, learner, lesson))
    return RunsOut(
        runs=[run_out(run, at) for run, at in zip(runs, await dispatcher.queue_positions(runs), strict=True)]
    )


@router.get("/runs/{run_id}", name="show_run")
async def show_run(run_id: str, learner: OptionalLearnerId, dispatcher: RunDispatcherDep) -> RunOut:
    async with dispatcher.db.session() as session:
        run = await get_run(session, learner, run_id)
        ahead = await count_runs_ahead(session, run)
    return run_out(run, await look_up_position(dispatcher.runner, run, ahead))


@router.get("/runs/{run_id}/events", name="run_events")
async def run_events(
    run_id: str, learner: OptionalLearnerId, dispatcher: RunDispatcherDep, after: AfterSeq = 0
) -> Response:
    async with dispatcher.db.session() as session:
        run = await get_run(session, learner, run_id)
    lines = await event_log.read_stored_events(dispatcher.db, run.id, after, _MAX_EVENTS)
    reached = lines[-1].seq if lines else after
    finished = "true" if run.finished and reached >= run.last_seq else "false"
    body = f'{{"events":[{",".join(line.payload for line in lines)}],"finished":{finished}}}'
    return Response(body, media_type="application/json", headers=NO_STORE)


@router.get("/runs/{run_id}/stream", name="run_stream")
async def run_stream(
    run_id: str,
    learner: OptionalLearnerId,
    address: VisitorAddress,
    dispatcher: RunDispatcherDep,
    disabled: DisabledAccountsDep,
    after: AfterSeq = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    async with dispatcher.db.session() as session:
        run = await get_run(session, learner, run_id)
    if last_event_id.isascii() and last_event_id.isdigit():
        after = min(int(last_event_id[:20]), _MAX_SEQ)
    if run.finished and after >= run.last_seq:
        return Response(status_code=204)  # tells an EventSource not to reconnect
    return event_stream(dispatcher.streams.open(run, after, address), disabled.watch(learner))


@router.post("/runs/{run_id}/stop", status_code=202, name="stop_run")
async def stop_run(run_id: str, learner: OptionalLearnerId, dispatcher: RunDispatcherDep) -> RunOut:
    async with dispatcher.db.session() as session:
        run = await get_run(session, learner, run_id)
        ahead = await count_runs_ahead(session, run)
    await dispatcher.stop(run)
    return run_out(run, await look_up_position(dispatcher.runner, run, ahead))
