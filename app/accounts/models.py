"""The tables of accounts: who someone is, how they sign in, and what came in from a browser without an account."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class Role(StrEnum):
    """What an account may do; each may do what the ones before it may."""

    learner = "learner"
    instructor = "instructor"
    admin = "admin"


class EmailFrequency(StrEnum):
    """When notifications go out by e-mail."""

    immediately = "immediately"
    daily = "daily"
    never = "never"


class Account(Base):
    """A person with an account. A deleted account leaves nothing here: what it wrote then has no author."""

    __tablename__ = "accounts"
    __table_args__ = (
        CheckConstraint("role IN ('learner', 'instructor', 'admin')", name="role_known"),
        CheckConstraint("email_frequency IN ('immediately', 'daily', 'never')", name="email_frequency_known"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    learner_id: Mapped[str] = mapped_column(String(64), unique=True)
    """What runs and progress are kept under: the id of the visitor who signed up, so that live sessions go on."""
    email: Mapped[str] = mapped_column(String(320))
    """As typed: mail goes there."""
    email_key: Mapped[str] = mapped_column(String(320), unique=True)
    """The same in one spelling: what an account is found by."""
    email_confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    """argon2id; None for who signs in by passkey or another site only."""
    name: Mapped[str] = mapped_column(String(80))
    handle: Mapped[str] = mapped_column(String(40), unique=True)
    """``@handle``: small letters, digits and hyphens."""
    role: Mapped[str] = mapped_column(String(16), default=Role.learner)
    language: Mapped[str] = mapped_column(String(8), default="en")
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    """A name of the tz database."""
    public_profile: Mapped[bool] = mapped_column(default=False)
    email_frequency: Mapped[str] = mapped_column(String(16), default=EmailFrequency.immediately)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AuthSession(Base):
    """A browser that is signed in. SQL holds only the hash of its cookie."""

    __tablename__ = "auth_sessions"
    __table_args__ = (Index("ix_auth_sessions_account_id", "account_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    public_id: Mapped[str] = mapped_column(String(32), unique=True)
    """What its owner's list of sign-ins names it by."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    method: Mapped[str] = mapped_column(String(16))
    """``password``, ``passkey``, ``oidc``, ``link``."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When it was last used, to a few minutes."""
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    user_agent: Mapped[str] = mapped_column(String(300))
    ip_address: Mapped[str] = mapped_column(String(64))


class EmailLink(Base):
    """A link sent by mail that may be used once. SQL holds only the hash of its token."""

    __tablename__ = "email_links"
    __table_args__ = (Index("ix_email_links_account_id", "account_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    purpose: Mapped[str] = mapped_column(String(16))
    """``confirm``, ``reset``, ``change``."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(320))
    """Where it was sent."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Invitation(Base):
    """Leave to sign up where sign-up is by invitation."""

    __tablename__ = "invitations"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    email: Mapped[str | None] = mapped_column(String(320))
    """Whom it is for; None for whoever has it."""
    role: Mapped[str] = mapped_column(String(16), default=Role.learner)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Passkey(Base):
    """A WebAuthn credential."""

    __tablename__ = "passkeys"
    __table_args__ = (Index("ix_passkeys_account_id", "account_id"),)

    id: Mapped[str] = mapped_column(String(400), primary_key=True)
    """The credential's id, base64url."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int]
    transports: Mapped[str] = mapped_column(String(100), default="")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Identity(Base):
    """An account at an OpenID Connect issuer that signs in here."""

    __tablename__ = "identities"
    __table_args__ = (
        Index("ix_identities_account_id", "account_id"),
        UniqueConstraint("account_id", "issuer", name="uq_identities_account_id_issuer"),
    )

    issuer: Mapped[str] = mapped_column(String(200), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(320))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class RetiredHandle(Base):
    """A handle that somebody gave up, or that went with their account: its hash, so that nobody else takes it."""

    __tablename__ = "retired_handles"
    __table_args__ = (Index("ix_retired_handles_account_id", "account_id"),)

    handle_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """Whose it was: they may have it again. None once they have gone."""


class MergedVisitor(Base):
    """A visitor whose runs and progress have become an account's: their cookie no longer opens anything."""

    __tablename__ = "merged_visitors"
    __table_args__ = (Index("ix_merged_visitors_account_id", "account_id"),)

    visitor_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    merged_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AuthChallenge(Base):
    """A sign-in with a device or another site that has begun: what its answer has to fit, once and soon."""

    __tablename__ = "auth_challenges"
    __table_args__ = (Index("ix_auth_challenges_expires_at", "expires_at"),)

    key_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Of the challenge or state that the answer brings back."""
    browser_hash: Mapped[str] = mapped_column(String(64))
    """Of the cookie of the browser that began it."""
    purpose: Mapped[str] = mapped_column(String(64))
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """Whose account it adds something to."""
    data: Mapped[str] = mapped_column(Text)
    """A JSON object of strings."""
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
