"""The facts of a list of threads, on SQLite and on PostgreSQL."""

from __future__ import annotations

from app.comments import editing, moderation, queries, reactions
from app.comments.list_facts import ListFacts, load_facts
from app.comments.models import Comment, ReactionKind
from app.comments.permissions import Viewer
from tests.factories.comments import NEW, NOBODY, Commenters, make_comment


async def facts_for(people: Commenters, viewer: Viewer) -> ListFacts:
    return await load_facts(people.db, viewer, NEW.lesson, "")


async def test_the_facts_name_every_comment_of_the_list_and_few_others(people: Commenters) -> None:
    async with people.db.writing() as session:
        roots = [make_comment(people.ada, n) for n in range(queries.THREADS_PER_PAGE * 2)]
        for number in (3, 30):
            roots[number].pinned = True
        session.add_all(roots)
        await session.flush()
        session.add_all(make_comment(people.bob, 100 + n, roots[-1].id) for n in range(50))
        session.add_all(make_comment(people.bob, 200 + n, roots[3].id) for n in range(2))
    for viewer in (NOBODY, Viewer(people.ada.id, False), Viewer(people.teacher.id, True)):
        async with people.db.session() as session:
            threads, _ = await queries.list_threads(session, viewer, NEW.lesson, "")
        known = {row[0] for row in (await load_facts(people.db, viewer, NEW.lesson, "")).comments}
        shown = {comment.id for thread in threads for comment in (thread.root, *thread.replies)}

        assert shown <= known
        assert len(known - shown) <= 3  # one thread and one reply of each long thread more than fit


async def test_what_a_learner_did_elsewhere_does_not_change_the_facts(people: Commenters) -> None:
    await people.write(people.ada)
    ada, bob, teacher = (Viewer(each.id, each is people.teacher) for each in (people.ada, people.bob, people.teacher))

    assert (await facts_for(people, bob)).comments == (await facts_for(people, NOBODY)).comments
    assert (await facts_for(people, ada)).comments != (await facts_for(people, bob)).comments
    assert (await facts_for(people, teacher)).comments == (await facts_for(people, bob)).comments


async def test_every_change_of_a_shown_comment_changes_the_facts(people: Commenters) -> None:
    root = await people.write(people.ada)
    viewer = Viewer(people.bob.id, False)
    seen = [(await facts_for(people, viewer)).comments]

    async def note() -> None:
        facts = (await facts_for(people, viewer)).comments
        assert facts not in seen
        seen.append(facts)

    reply = await people.write(people.teacher, "Yes", root)
    await note()
    async with people.db.writing() as session:
        await editing.edit_comment(session, people.ada, root.id, "Better", 0)
    await note()
    async with people.db.writing() as session:
        await reactions.set_reaction(session, people.bob, root.id, ReactionKind.same, on=True)
    await note()
    async with people.db.writing() as session:
        await reactions.set_reaction(session, people.bob, root.id, ReactionKind.same, on=False)
        await reactions.set_reaction(session, people.teacher, root.id, ReactionKind.same, on=True)
    await note()
    async with people.db.writing() as session:
        await moderation.set_answer(session, people.teacher, reply.id, on=True)
    await note()
    async with people.db.writing() as session:
        await moderation.hide_comment(session, people.teacher, reply.id, "A test")
    await note()


async def test_the_facts_count_the_comments_of_every_cell(people: Commenters) -> None:
    await people.write(people.ada)
    facts = await load_facts(people.db, NOBODY, NEW.lesson, "no such cell")
    async with people.db.session() as session:
        assert facts.counts == await queries.count_by_cell(session, NEW.lesson) == {"": 1}
    assert not facts.comments


async def test_a_held_comment_is_a_fact_for_its_author_and_for_instructors(people: Commenters) -> None:
    held: Comment = await people.write(people.ada, hold_first=1)
    known = [
        {row[0] for row in (await facts_for(people, viewer)).comments}
        for viewer in (Viewer(people.ada.id, False), Viewer(people.teacher.id, True), Viewer(people.bob.id, False))
    ]

    assert known == [{held.id}, {held.id}, set()]
