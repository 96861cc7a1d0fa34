"""One cell of a lesson in a group: kinds of errors or of wrong answers, limits that were met, and the code behind them.

Names of errors and of checks, and diagnoses without their values, are shown for all learners. Messages and code, which
learners have written or which repeat it, are shown only of learners who agreed, and only for runs since they did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import Select, select

from app.accounts.models import Account
from app.exercises.diagnoses import diagnosis_title, find_diagnosis
from app.exercises.models import Submission, Verdict
from app.exercises.verdicts import NOT_REACHED, PASSED, PENDING, load_results
from app.groups.models import GroupMember, GroupRole
from app.groups.report_table import ReportCell, ReportTable, count_cell
from app.groups.reports import LIMIT_OUTCOMES, ReportScope, count_all_learners
from app.i18n import gettext
from app.runs.models import JUDGED, UNSUCCESSFUL, Run, RunEvent
from app.runs.status_labels import outcome_label
from runners.wire.protocol import ErrorEvent, Outcome

MAX_RUNS = 500
"""The latest runs of a cell that a page looks at."""
_SAMPLES_PER_KIND = 3
MAX_CODE = 20_000
"""Characters of the code of a sample."""
_MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class CodeSample:
    """Code of a learner who agreed to show it, and what came of it."""

    account_id: str
    name: str
    at: datetime
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class CellDetails:
    """A table with a row for each kind, and samples by kind in the same order. A kind may have none."""

    table: ReportTable
    samples: Sequence[tuple[str, Sequence[CodeSample]]]


@dataclass(frozen=True, slots=True)
class _Finding:
    """One run and one kind that it belongs to."""

    run: Run
    member: GroupMember
    account: Account
    kind: str
    message: str

    @property
    def is_shared(self) -> bool:
        return shows_code(self.member, self.run.created_at)


def shows_code(member: GroupMember, ran_at: datetime) -> bool:
    """Whether the staff may see code of this member that ran at that time. Pure."""
    return member.code_shared_at is not None and member.code_shared_at <= ran_at


async def describe_errors(scope: ReportScope, lesson: str, cell: str) -> CellDetails:
    """The errors of a cell, by the name of the exception."""
    runs = _of_learners(scope, lesson, cell).where(UNSUCCESSFUL, Run.outcome.in_((Outcome.error, Outcome.crash)))
    found = (await scope.session.execute(runs)).all()
    errors = await first_errors(scope, [run.id for run, *_ in found])
    findings = []
    for run, member, account in found:
        name, message = errors.get(run.id, (outcome_label(Outcome(run.outcome or Outcome.lost)), ""))
        findings.append(_Finding(run, member, account, name, message))
    columns = (gettext("Error"), gettext("Learners"), gettext("Runs"))
    empty = gettext("No run ended with an error in this time.")
    return _details(findings, await count_all_learners(scope), "cell-errors", columns, empty)


async def describe_limits(scope: ReportScope, lesson: str, cell: str) -> CellDetails:
    """The runs of a cell that met a limit, by limit."""
    runs = _of_learners(scope, lesson, cell).where(UNSUCCESSFUL, Run.outcome.in_(LIMIT_OUTCOMES))
    findings = [
        _Finding(run, member, account, outcome_label(Outcome(run.outcome or Outcome.lost)), "")
        for run, member, account in await scope.session.execute(runs)
    ]
    columns = (gettext("Outcome"), gettext("Learners"), gettext("Runs"))
    empty = gettext("No run met a limit in this time.")
    return _details(findings, await count_all_learners(scope), "cell-limits", columns, empty)


async def describe_wrong_answers(scope: ReportScope, lesson: str, cell: str) -> CellDetails:
    """The failed tries at an exercise, by diagnosis, by check, or by what ended the code before its checks."""
    runs = _of_learners(scope, lesson, cell).where(JUDGED, Submission.verdict == Verdict.failed)
    joined = runs.join(Submission, Submission.run_id == Run.id).add_columns(Submission.results)
    found = (await scope.session.execute(joined)).all()
    kinds = await wrong_kinds(scope, [(run, results) for run, _, _, results in found])
    findings = [
        _Finding(run, member, account, kind, message)
        for run, member, account, _ in found
        for kind, message in kinds[run.id]
    ]
    columns = (gettext("What went wrong"), gettext("Learners"), gettext("Tries"))
    empty = gettext("Nobody gave a wrong answer in this time.")
    return _details(findings, await count_all_learners(scope), "wrong-answers", columns, empty)


async def first_errors(scope: ReportScope, runs: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The name and the message of the first exception of each run."""
    if not runs:
        return {}
    events = select(RunEvent.run_id, RunEvent.payload).where(RunEvent.run_id.in_(runs), RunEvent.kind == "error")
    found: dict[str, tuple[str, str]] = {}
    for run_id, payload in await scope.session.execute(events.order_by(RunEvent.run_id, RunEvent.seq)):
        if run_id not in found:
            try:
                event = ErrorEvent.model_validate_json(payload)
            except ValidationError:  # of an older version
                continue
            found[run_id] = event.name[:100], event.value[:_MAX_MESSAGE]
    return found


def _of_learners(scope: ReportScope, lesson: str, cell: str) -> Select[Run, GroupMember, Account]:
    """The latest runs of one cell by the group's learners."""
    return (
        select(Run, GroupMember, Account)
        .join(Account, Account.learner_id == Run.learner_id)
        .join(GroupMember, GroupMember.account_id == Account.id)
        .where(GroupMember.group_id == scope.group.id, GroupMember.role == GroupRole.learner)
        .where(Run.lesson == lesson, Run.cell == cell, *scope.during(Run.created_at))
        .order_by(Run.created_at.desc(), Run.id)
        .limit(MAX_RUNS)
    )


async def wrong_kinds(
    scope: ReportScope, submissions: Sequence[tuple[Run, str]]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The kinds that each failed submission belongs to, with messages, by run: of its checks, or what ended its code.

    ``submissions`` are runs with the stored results of their checks.
    """
    kinds = {run.id: list(_wrong_checks(scope, run, results)) for run, results in submissions}
    ended = [run for run, _ in submissions if not kinds[run.id]]
    errors = await first_errors(scope, [run.id for run in ended if run.outcome in (Outcome.error, Outcome.crash)])
    for run in ended:
        if run.id in errors:
            name, message = errors[run.id]
            kinds[run.id] = [(gettext("{error} before the checks").format(error=name), message)]
        else:
            kinds[run.id] = [(outcome_label(Outcome(run.outcome or Outcome.lost)), "")]
    return kinds


def _wrong_checks(scope: ReportScope, run: Run, results: str) -> Iterable[tuple[str, str]]:
    """What was wrong with a submission: each kind once, with what the checks said besides.

    A kind is the diagnosis of a check without its values, which several checks may share, or else the check and how it
    ended.
    """
    words = {
        "failed": gettext("wrong result"),
        "error": gettext("ended with an error"),
        "too-slow": gettext("too slow"),
    }
    found: defaultdict[str, list[str]] = defaultdict(list)
    for result in load_results(results):
        if result.outcome in (PASSED, PENDING, NOT_REACHED):
            continue
        kind = _diagnosis(scope, run, result.message)
        if not kind:
            title = scope.catalog.check_title(run.lesson, run.cell, result.name, scope.language)
            kind = f"{title}: {words.get(result.outcome, result.outcome)}"
        messages = found[kind.replace("`", "")]
        if result.message.rstrip(".。") != kind:
            messages.append(result.message[:_MAX_MESSAGE])
    return [(kind, "\n".join(dict.fromkeys(messages))) for kind, messages in found.items()]


def _diagnosis(scope: ReportScope, run: Run, message: str) -> str:
    judged, read = (
        scope.catalog.find_exercise(run.lesson, run.cell, language) for language in (run.language, scope.language)
    )
    diagnosis = find_diagnosis(message, judged) if message and judged is not None else ""
    return diagnosis_title(diagnosis, read) if diagnosis and read is not None else ""


def _details(findings: Sequence[_Finding], learners: int, name: str, columns: Sequence[str], empty: str) -> CellDetails:
    runs: Counter[str] = Counter(finding.kind for finding in findings)
    who: defaultdict[str, set[str]] = defaultdict(set)
    samples: defaultdict[str, list[CodeSample]] = defaultdict(list)
    shown: set[tuple[str, str]] = set()  # the learners and the code below each kind: others say more
    shown_runs: set[str] = set()  # code with several mistakes is below the first of them
    for finding in findings:
        kind, account = finding.kind, finding.account
        who[kind].add(account.id)
        code = finding.run.code[:MAX_CODE]
        once = {(kind, account.id), (kind, code.strip())}
        is_new = shown.isdisjoint(once) and finding.run.id not in shown_runs
        if finding.is_shared and len(samples[kind]) < _SAMPLES_PER_KIND and is_new:
            shown |= once
            shown_runs.add(finding.run.id)
            samples[kind].append(CodeSample(account.id, account.name, finding.run.created_at, finding.message, code))
    kinds = sorted(runs, key=lambda kind: (-len(who[kind]), -runs[kind], kind))
    rows = [(ReportCell(kind), count_cell(len(who[kind]), learners), count_cell(runs[kind])) for kind in kinds]
    table = ReportTable(name, columns[0], columns, rows, empty)
    return CellDetails(table, [(kind, samples[kind]) for kind in kinds if samples[kind]])


DETAILS: Mapping[str, Callable[[ReportScope, str, str], Awaitable[CellDetails]]] = {
    "errors": describe_errors,
    "limits": describe_limits,
    "wrong-answers": describe_wrong_answers,
}
"""By their names in URLs, for a lesson and a cell of it."""
