"""Topics become messages that PostgreSQL accepts, and come out as they went in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.topic_messages import MAX_MESSAGE_BYTES, TopicMessage, decode_message, encode_topics

TOPICS = st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1, max_size=300))


@given(TOPICS)
def test_every_topic_arrives_once_in_its_order(topics: list[str]) -> None:
    messages = [decode_message(message) for message in encode_topics("me", topics)]

    assert {message.sender for message in messages} == {"me"}
    assert [topic for message in messages for topic in message.topics] == topics


def test_no_message_is_longer_than_postgresql_accepts() -> None:
    messages = list(encode_topics("me", [f"알림 {number:040}" for number in range(1000)]))

    assert max(len(message.encode()) for message in messages) <= MAX_MESSAGE_BYTES
    assert len(messages) < 10


def test_without_topics_there_is_one_message_that_only_shows_that_messages_arrive() -> None:
    assert [decode_message(message) for message in encode_topics("me", [])] == [TopicMessage("me", ())]
