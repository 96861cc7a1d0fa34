"""Nothing that somebody wrote can reverse the direction of other text, wherever a page or an email shows it."""

from __future__ import annotations

from app.comments.notification_content import comment_excerpt
from tests.factories.comments import HTML, Classroom, post_comment

TURN = "\u202e"
SHOWN = "[U+202E]"


async def test_a_notification_quotes_it_written_out(room: Classroom) -> None:
    root = await post_comment(room.ada, "A question")
    await post_comment(room.bob, f"exe.{TURN}gpj", thread=root)

    page = (await room.ada.get("/en/notifications")).text

    assert f"exe.{SHOWN}gpj" in page
    assert TURN not in page


def test_a_quotation_is_cut_between_characters_that_are_shown() -> None:
    assert TURN not in comment_excerpt(f"{TURN}a" * 200)
    assert len(comment_excerpt(f"{TURN}a" * 200)) <= 282


async def test_earlier_versions_reports_and_reasons_show_it_written_out(room: Classroom) -> None:
    root = await post_comment(room.ada, f"first{TURN}")
    await room.ada.post(f"/en/comments/{root}", data={"text": f"second{TURN}", "edits": "0"})
    await room.bob.post(f"/en/comments/{root}/report", data={"text": f"why{TURN}"})
    reported = (await room.teacher.get("/en/moderation?kind=reported")).text
    await room.teacher.post(f"/en/comments/{root}/moderate", data={"verb": "hide", "text": f"so{TURN}"}, headers=HTML)

    past = (await room.ada.get(f"/en/comments/{root}/history")).text
    hidden = (await room.ada.get(f"/en/comments/{root}")).text
    queue = (await room.teacher.get("/en/moderation?kind=newest")).text

    assert f"first{SHOWN}" in past
    assert f"second{SHOWN}" in past
    assert f"why{SHOWN}" in reported
    assert f"so{SHOWN}" in hidden
    assert f"so{SHOWN}" in queue
    assert not any(TURN in page for page in (past, reported, hidden, queue))
