"""Learners, progress and comments that nobody made: what a database under load holds. Pure, the same for one seed.

Everything is counted back from one moment, so that nothing lies in the future. Lessons are not asked for evenly: one
comment in eight is about the first of them, one thread in 2,000 is a long one, and most learners leave early.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from app.accounts.models import Account, EmailFrequency, Role
from app.comments import markdown
from app.comments.models import Comment, CommentCounter, CommentState
from app.db import Base
from app.progress import events
from app.progress.models import LedgerEntry, LessonProgress
from app.progress.requirements import LESSON_XP

COURSE = "seeded"
"""The course of lessons that are made up too."""
CELL = "one"
"""The only cell of such a lesson."""
_DAYS = 300
"""How long ago the first learner came."""
_MODULE = 20
"""Lessons."""
_BUSY, _LONG, _MOST_REPLIES = 8, 2_000, 200
_NAMES = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Hana", "Jun", "Katherine", "Leslie", "Min-jun", "Radia", "Wei")
_SURNAMES = ("Byron", "Chen", "Hopper", "Jones", "Kim", "Lee", "Liskov", "Müller", "Park", "Silva", "Wang", "Zhang")
_ZONES = ("UTC", "Asia/Seoul", "Asia/Shanghai", "Europe/Berlin", "America/New_York")
_LANGUAGES = ("en", "en", "ko", "zh")
_SAYINGS = (
    "Why is the loss divided by the **global** batch size here, and not by the one of a replica?",
    "On my machine the first step takes much longer than the others. Is that the tracing of `tf.function`?",
    "This helped, thank you. I had `drop_remainder` left out, so the last batch had another shape.",
    "The same here:\n\n```python\nwith strategy.scope():\n    model = make_model()\n```\n\nWithout the scope it fails.",
    "What happens to the variables when a worker goes away?\n\n* Are they read from the checkpoint?\n* Or sent again?",
    "같은 결과가 나옵니다. 복제본 수를 바꾸면 배치 크기도 바꿔야 하나요?",
    "这里的学习率要不要跟着副本数一起变？",
    "> each replica sees its own part of the batch\n\nSo the order of the examples is not the same as on one device.",
)

Row = dict[str, Any]
Made = tuple[type[Base], Row]
"""A row, and the table it belongs to."""


@dataclass(frozen=True)
class Plan:
    """How much of everything, and which lessons it is about."""

    seed: int
    users: int
    comments: int
    lessons: Mapping[str, tuple[str, ...]]
    """``course/slug`` to the names of its cells, the busiest lesson first."""
    until: datetime

    def draw(self, what: str) -> Random:
        """Chance for one kind of thing: the others do not change it."""
        return Random(f"{self.seed} {what}")

    def account(self, number: int) -> str:
        """The id of an account."""
        return hashlib.sha256(f"{self.seed} account {number}".encode()).hexdigest()[:32]

    def learner(self, number: int) -> str:
        """What its progress is kept under."""
        return hashlib.sha256(f"{self.seed} learner {number}".encode()).hexdigest()

    def came(self, number: int) -> datetime:
        """When its owner signed up: one after the other."""
        return self.until - timedelta(days=_DAYS) * (1 - number / (2 * max(1, self.users)))


def made_up_lessons(number: int) -> dict[str, tuple[str, ...]]:
    """The names of that many lessons of the course ``seeded``, and their cells."""
    return {f"{COURSE}/lesson-{n:04}": (CELL,) for n in range(1, number + 1)}


def files(lessons: int) -> Iterator[tuple[str, str]]:
    """The files of that course: path below the folder of courses, and text."""
    listed = [lesson.partition("/")[2] for lesson in made_up_lessons(lessons)]
    modules = [listed[start : start + _MODULE] for start in range(0, lessons, _MODULE)]
    course = ['title.en = "Made up"', 'summary.en = "Lessons that benchmarks/seed.py wrote."']
    for number, module in enumerate(modules, 1):
        names = ", ".join(f'"{slug}"' for slug in module)
        course += ["", "[[modules]]", f'slug = "part-{number}"', f'title.en = "Part {number}"', f"lessons = [{names}]"]
    yield f"{COURSE}/course.toml", "\n".join(course) + "\n"
    for number, slug in enumerate(listed, 1):
        yield f"{COURSE}/{slug}/lesson.md", _lesson(number)


def accounts(plan: Plan) -> Iterator[Made]:
    """The learners. None has a password, and none is sent mail."""
    chance = plan.draw("accounts")
    for number in range(plan.users):
        name, email = f"{chance.choice(_NAMES)} {chance.choice(_SURNAMES)}", f"learner-{plan.seed}-{number}@example.org"
        came = plan.came(number)
        yield (
            Account,
            {
                "id": plan.account(number),
                "learner_id": plan.learner(number),
                "email": email,
                "email_key": email,
                "email_confirmed_at": came,
                "name": name,
                "handle": f"learner-{plan.seed}-{number}",
                "role": Role.learner,
                "language": chance.choice(_LANGUAGES),
                "time_zone": chance.choice(_ZONES),
                "public_profile": False,
                "email_frequency": EmailFrequency.never,
                "created_at": came,
            },
        )


def progress(plan: Plan) -> Iterator[Made]:
    """What each learner did: some lessons one after the other, most of them to the end."""
    chance = plan.draw("progress")
    lessons = list(plan.lessons)
    for number in range(plan.users if lessons else 0):
        learner, at = plan.learner(number), plan.came(number)
        first = min(chance.randrange(len(lessons)), chance.randrange(len(lessons)))
        days = set()
        for lesson in lessons[first : first + 1 + min(12, int(chance.expovariate(0.5)))]:
            at += timedelta(hours=chance.uniform(3, 60))
            if at >= plan.until:
                break
            whole = chance.random() < 0.8
            days.add(at.date())
            yield from _lesson_done(learner, lesson, plan.lessons[lesson], at, whole=whole)
        for day in sorted(days):
            yield LedgerEntry, _entry(learner, events.LearningEvent("day", day.isoformat()), at)


def comments(plan: Plan) -> Iterator[Made]:
    """The threads in the order of time, each with its replies behind it; and how many comments are where."""
    chance = plan.draw("comments")
    lessons = list(plan.lessons)
    left, places = (plan.comments if lessons and plan.users else 0), Counter[tuple[str, str]]()
    while left:
        done = 1 - left / plan.comments
        at = plan.until - timedelta(days=_DAYS / 2 * (1 - done)) - timedelta(days=3)
        lesson = lessons[0] if chance.randrange(_BUSY) == 0 else chance.choice(lessons)
        cells = plan.lessons[lesson]
        cell = chance.choice(cells) if cells and chance.random() < 0.3 else ""
        most = _MOST_REPLIES if chance.randrange(_LONG) == 0 else min(20, int(chance.expovariate(0.8)))
        replies = min(most, left - 1)
        root = _comment(plan, chance, lesson, cell, at)
        yield Comment, root | {"reply_count": replies}
        for number in range(1, replies + 1):
            later = at + timedelta(days=2) * number / (replies + 1)
            yield Comment, _comment(plan, chance, lesson, cell, later) | {"thread_id": root["id"]}
        places[lesson, cell] += 1 + replies
        left -= 1 + replies
    for (lesson, cell), count in places.items():
        yield CommentCounter, {"lesson": lesson, "cell": cell, "comment_count": count}


def _lesson_done(learner: str, lesson: str, cells: tuple[str, ...], at: datetime, *, whole: bool) -> Iterator[Made]:
    ended = at + timedelta(minutes=40)
    ran = cells if whole else cells[: len(cells) // 2]
    earned = [events.LearningEvent("cell", f"{lesson}#{cell}", events.CELL_XP) for cell in ran]
    if whole:
        earned += [events.LearningEvent("read", lesson), events.LearningEvent("lesson", lesson, LESSON_XP)]
    for fact in earned:
        yield LedgerEntry, _entry(learner, fact, ended)
    moment = ended if whole else None
    own = {"learner_id": learner, "lesson": lesson, "started_at": at, "last_seen_at": ended}
    yield LessonProgress, own | {"end_reached_at": moment, "completed_at": moment, "anchor": ""}


def _entry(learner: str, fact: events.LearningEvent, at: datetime) -> Row:
    return {"learner_id": learner, "kind": fact.kind, "subject": fact.subject, "xp": fact.xp, "occurred_at": at}


def _comment(plan: Plan, chance: Random, lesson: str, cell: str, at: datetime) -> Row:
    source = chance.choice(_SAYINGS)
    key = f"{chance.getrandbits(64):016x}"
    return {
        "id": f"{int(at.timestamp() * 1_000_000):014x}{key}",  # as app.db.sortable_id makes them
        "lesson": lesson,
        "cell": cell,
        "thread_id": None,
        "author_id": plan.account(chance.randrange(plan.users)),
        "idempotency_key": key,
        "source": source,
        "html": _html(source),
        "renderer_version": markdown.RENDERER_VERSION,
        "language": "en",
        "state": CommentState.shown,
        "created_at": at,
        "edit_count": 0,
        "pinned": False,
        "reply_count": 0,
        "helpful_count": 0,
        "same_count": 0,
        "thanks_count": 0,
        "report_count": 0,
        "reason": "",
    }


@cache
def _html(source: str) -> str:
    return markdown.to_html(source)


def _lesson(number: int) -> str:
    return f"""---
title: Made-up lesson {number}
summary: It is there so that there are many.
minutes: 10
status: published
topology: cpu
---

Words of lesson {number}, which nobody has to read.

## A heading

```{{code-cell}} python
:name: {CELL}
:caption: Print a number

print({number})
```
"""
