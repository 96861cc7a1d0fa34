"""The messages in which PostgreSQL's NOTIFY carries topics between processes.

NOTIFY is part of a transaction: its message is sent when that commits and dropped when it rolls back. A message is
the ID of the bus that sent it, then its topics, each on a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

CHANNEL = "lockstep_topics"
MAX_MESSAGE_BYTES = 7_900
"""PostgreSQL accepts less than 8,000."""
SEND = text("SELECT pg_notify(:channel, message) FROM unnest(CAST(:messages AS text[])) AS message")


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """Topics from the bus with the ID ``sender``. Without topics, it only shows that messages arrive."""

    sender: str
    topics: tuple[str, ...]


class TopicSender:
    """Sends topics in a session's transaction, in the name of a bus."""

    def __init__(self, sender: str) -> None:
        self._sender = sender

    def __call__(self, session: Session, topics: Sequence[str]) -> None:
        """Called before the commit."""
        session.execute(SEND, {"channel": CHANNEL, "messages": list(encode_topics(self._sender, topics))})


def encode_topics(sender: str, topics: Sequence[str]) -> Iterator[str]:
    """As few messages as hold all topics; one without topics if there are none. Pure."""
    message = sender
    for topic in topics:
        line = f"\n{topic}"
        if len(message.encode()) + len(line.encode()) > MAX_MESSAGE_BYTES:
            yield message
            message = sender
        message += line
    yield message


def decode_message(message: str) -> TopicMessage:
    """The inverse of ``encode_topics``, for one message. Pure."""
    sender, *topics = message.split("\n")
    return TopicMessage(sender, tuple(topics))
