"""No address reveals a solution, an answer, or feedback before a learner may have it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import aclosing

from fastapi import FastAPI
from starlette.routing import Route

from app.lessons.dependencies import CATALOG
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.exercises import SECRETS, write_exercise_lesson
from tests.factories.routes import ENDLESS, all_routes
from tests.factories.scripted_supervisor import ScriptedSupervisor

KNOWN = {"lang": ("en", "ko"), "course": ("course",), "slug": ("one",), "form": ("ipynb", "html", "py", "markdown")}
NAMES = (
    "mean",
    "what-divides",
    "which-number",
    "printed",
    "order",
    "choice",
    "last",
    "checks.py",
    "wrong/mean--sum.py",
)


def addresses(app: FastAPI) -> Iterator[str]:
    """Every address about the lesson, with every name in it."""
    for route in all_routes(app):
        if not isinstance(route, Route) or "GET" not in (route.methods or ()) or route.name in ENDLESS:
            continue
        pieces = re.split(r"\{(\w+)[^}]*\}", route.path)  # text and names of parts in turn
        pieces[1::2] = [f"{{{part}}}" for part in pieces[1::2]]
        names = [piece[1:-1] for piece in pieces[1::2]]
        choices = [KNOWN.get(name, NAMES if name == "name" else ("1",)) for name in names]
        for values in itertools.product(*choices):
            yield "".join(pieces).format(**dict(zip(names, values, strict=True)))


async def test_no_address_gives_an_answer_away(
    app: FastAPI, settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    write_exercise_lesson(settings.lessons_dir)
    CATALOG.get(app).reload()
    told, found = {}, []
    async with aclosing(await signed_in_browser(app, "learner")) as browser:
        for address in dict.fromkeys(addresses(app)):
            for query in ("", "?with=mine") if "course/one." in address else ("",):
                answer = await browser.get(address + query)
                assert answer.status_code < 500, address
                found += [address + query] if answer.status_code == 200 else []
                text = answer.text + str(answer.headers)
                if secrets := [secret for secret in SECRETS if secret in text]:
                    told[address + query] = secrets
    assert told == {}
    pages = {"/en/courses/course/one", "/ko/courses/course/one", "/en/courses/course/one.md", "/en/courses/course"}
    assert pages | {f"/ko/courses/course/one.{form}?with=mine" for form in KNOWN["form"]} <= set(found)


async def test_what_names_a_version_does_not_depend_on_answers(app: FastAPI, settings: Settings) -> None:
    """Whoever knows all of a lesson but an answer could otherwise try every answer."""
    told = []
    for solution in ("len(values)", "2 * len(values)"):
        folder = write_exercise_lesson(settings.lessons_dir)
        (folder / "lesson.md").write_text((folder / "lesson.md").read_text().replace("len(values)", solution))
        CATALOG.get(app).reload()
        assert solution in CATALOG.get(app).lesson("course", "one", "en").cells[1].exercise.solution  # type: ignore[union-attr]
        async with aclosing(await signed_in_browser(app, "learner")) as browser:
            source = await browser.get("/en/courses/course/one.md")
            notebook = await browser.get("/en/courses/course/one.ipynb")
            told.append((source.headers["etag"], notebook.text))
    assert told[0] == told[1]


async def test_the_lesson_and_its_downloads_show_what_learners_are_to_do(app: FastAPI, settings: Settings) -> None:
    write_exercise_lesson(settings.lessons_dir)
    CATALOG.get(app).reload()
    async with aclosing(await signed_in_browser(app, "learner")) as browser:
        for ending in ("", ".md", ".ipynb", ".html", ".py", ".markdown"):
            text = (await browser.get(f"/en/courses/course/one{ending}")).text
            for words in (
                "Divide by what?",
                "Divide by the number of examples",
                "The number of replicas",
                "Which number?",
            ):
                assert words in text, (ending, words)
