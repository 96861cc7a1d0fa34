"""The tables of accounts: people, how they sign in, and which visitors were merged."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime


class Role(StrEnum):
    """What an account may do. Each role includes the ones before it."""

    learner = "learner"
    instructor = "instructor"
    admin = "admin"


class EmailFrequency(StrEnum):
    immediately = "immediately"
    daily = "daily"
    never = "never"


class Account(Base):
    """A person with an account. Deleting it deletes the row; its comments stay without an author."""

    __tablename__ = "accounts"
    __table_args__ = (
        CheckConstraint("role IN ('learner', 'instructor', 'admin')", name="role_known"),
        CheckConstraint("email_frequency IN ('immediately', 'daily', 'never')", name="email_frequency_known"),
        # For the list of accounts, and for what an address, handle or name begins with.
        Index("ix_accounts_created_at", "created_at", "id"),
        Index("ix_accounts_role", "role", "created_at", "id"),
        Index("ix_accounts_disabled_at", "disabled_at"),
        Index("ix_accounts_email_key", "email_key", postgresql_ops={"email_key": "text_pattern_ops"}),
        Index("ix_accounts_handle", "handle", postgresql_ops={"handle": "text_pattern_ops"}),
        Index("ix_accounts_name", "name", postgresql_ops={"name": "text_pattern_ops"}),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    learner_id: Mapped[str] = mapped_column(String(64), unique=True)
    """Owns runs and progress: the ID of the visitor who signed up, so that live sessions continue."""
    email: Mapped[str] = mapped_column(String(320))
    """As typed; mail is sent there."""
    email_key: Mapped[str] = mapped_column(String(320), unique=True)
    """The normalized address, by which accounts are found."""
    email_confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    """argon2id; None if the account signs in by passkey or identity provider only."""
    name: Mapped[str] = mapped_column(String(80))
    handle: Mapped[str] = mapped_column(String(40), unique=True)
    """``@handle``: lowercase letters, digits and hyphens."""
    role: Mapped[str] = mapped_column(String(16), default=Role.learner)
    language: Mapped[str] = mapped_column(String(8), default="en")
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC")
    """A name in the tz database."""
    public_profile: Mapped[bool] = mapped_column(default=False)
    email_frequency: Mapped[str] = mapped_column(String(16), default=EmailFrequency.immediately)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AuthSession(Base):
    """A signed-in browser. SQL holds only the hash of its cookie."""

    __tablename__ = "auth_sessions"
    __table_args__ = (Index("ix_auth_sessions_account_id", "account_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    public_id: Mapped[str] = mapped_column(String(32), unique=True)
    """Identifies the session in its owner's list."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    method: Mapped[str] = mapped_column(String(16))
    """``password``, ``passkey``, ``oidc``, ``link``; ``password+totp`` and so on with a code. ``old passkey``: with
    one, but the account has none any more."""
    pending: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it waits for the code of the second step: until then it signs nobody in."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When the browser signed in. A new password replaces the session but not this."""
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When it was last used, accurate to a few minutes."""
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    user_agent: Mapped[str] = mapped_column(String(300))
    ip_address: Mapped[str] = mapped_column(String(64))


class ApiToken(Base):
    """What lets a program read for an account. SQL holds only the hash. Read-only, and only what its scopes name."""

    __tablename__ = "api_tokens"
    __table_args__ = (Index("ix_api_tokens_account_id", "account_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    public_id: Mapped[str] = mapped_column(String(32), unique=True)
    """Identifies the token in its owner's list."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    scopes: Mapped[str] = mapped_column(String(200))
    """Words with spaces between them: see ``api_tokens.TokenScope``."""
    method: Mapped[str] = mapped_column(String(16))
    """How the browser had signed in that created it: see ``AuthSession.method``."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """The beginning, in UTC, of the day on which it was last used."""


class EmailLink(Base):
    """A link sent by email that works once. SQL holds only the hash of its token."""

    __tablename__ = "email_links"
    __table_args__ = (Index("ix_email_links_account_id", "account_id"),)

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    purpose: Mapped[str] = mapped_column(String(16))
    """``confirm``, ``reset``, ``change``."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    email: Mapped[str] = mapped_column(String(320))
    """Where the link was sent."""
    next_path: Mapped[str | None] = mapped_column(String(500))
    """The page of this site that follows, until the link is used: it may be an invitation to a group."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Invitation(Base):
    """Permission to sign up where sign-up is by invitation."""

    __tablename__ = "invitations"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    email: Mapped[str | None] = mapped_column(String(320))
    """The address that can use it; None for anyone who has the link."""
    role: Mapped[str] = mapped_column(String(16), default=Role.learner)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Passkey(Base):
    """A WebAuthn credential."""

    __tablename__ = "passkeys"
    __table_args__ = (Index("ix_passkeys_account_id", "account_id"),)

    id: Mapped[str] = mapped_column(String(400), primary_key=True)
    """The credential ID, base64url."""
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int]
    transports: Mapped[str] = mapped_column(String(100), default="")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Authenticator(Base):
    """An app that shows the codes of an account (TOTP)."""

    __tablename__ = "authenticators"

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    secret: Mapped[str] = mapped_column(String(64))
    """Base32, as the app holds it."""
    last_step: Mapped[int] = mapped_column(BigInteger)
    """The time step of the last code that was used."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class RecoveryCode(Base):
    """A code that replaces the app once."""

    __tablename__ = "recovery_codes"
    __table_args__ = (Index("ix_recovery_codes_account_id", "account_id"),)

    code_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))


class Identity(Base):
    """An account at an identity provider that signs in here."""

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
    """The hash of a handle that was changed or whose account was deleted, so that nobody else can take it."""

    __tablename__ = "retired_handles"
    __table_args__ = (Index("ix_retired_handles_account_id", "account_id"),)

    handle_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="SET NULL"))
    """Its former owner, the only account that can take it again. None once that account is deleted."""


class MergedVisitor(Base):
    """A visitor that was merged into an account: the visitor's cookie is no longer valid."""

    __tablename__ = "merged_visitors"
    __table_args__ = (Index("ix_merged_visitors_account_id", "account_id"),)

    visitor_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    merged_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AuthChallenge(Base):
    """A started sign-in with a device or another site, and the data to check its response. Works once; expires."""

    __tablename__ = "auth_challenges"
    __table_args__ = (Index("ix_auth_challenges_expires_at", "expires_at"),)

    key_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of the challenge or state that the response carries."""
    browser_hash: Mapped[str] = mapped_column(String(64))
    """Hash of the cookie of the browser that started it."""
    purpose: Mapped[str] = mapped_column(String(64))
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    """The account that a passkey or site will be added to; None for a sign-in."""
    data: Mapped[str] = mapped_column(Text)
    """A JSON object of strings."""
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
