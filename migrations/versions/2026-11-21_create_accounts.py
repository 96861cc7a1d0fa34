"""Create accounts, and how they sign in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "create_accounts"
down_revision = "create_runs"


def _of_account(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f(name), ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("learner_id", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("email_key", sa.String(length=320), nullable=False),
        sa.Column("email_confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("password_hash", sa.String(length=255), nullable=True),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("handle", sa.String(length=40), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("public_profile", sa.Boolean(), nullable=False),
        sa.Column("mailing", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("mailing IN ('at_once', 'daily', 'never')", name=op.f("ck_accounts_mailing_known")),
        sa.CheckConstraint("role IN ('learner', 'instructor', 'admin')", name=op.f("ck_accounts_role_known")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("email_key", name=op.f("uq_accounts_email_key")),
        sa.UniqueConstraint("handle", name=op.f("uq_accounts_handle")),
        sa.UniqueConstraint("learner_id", name=op.f("uq_accounts_learner_id")),
    )
    op.create_table(
        "attempts",
        sa.Column("key", sa.String(length=120), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempts")),
    )
    op.create_table(
        "invitations",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_invitations")),
    )
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        _of_account("fk_identities_account_id_accounts"),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identities")),
        sa.UniqueConstraint("account_id", "issuer", name="uq_identities_account_id_issuer"),
    )
    op.create_index("ix_identities_account_id", "identities", ["account_id"], unique=False)
    op.create_table(
        "mail_links",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        _of_account("fk_mail_links_account_id_accounts"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_mail_links")),
    )
    op.create_index("ix_mail_links_account_id", "mail_links", ["account_id"], unique=False)
    op.create_table(
        "merged_visitors",
        sa.Column("visitor_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("merged_at", sa.DateTime(timezone=True), nullable=False),
        _of_account("fk_merged_visitors_account_id_accounts"),
        sa.PrimaryKeyConstraint("visitor_id", name=op.f("pk_merged_visitors")),
    )
    op.create_index("ix_merged_visitors_account_id", "merged_visitors", ["account_id"], unique=False)
    op.create_table(
        "passkeys",
        sa.Column("id", sa.String(length=400), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.Integer(), nullable=False),
        sa.Column("transports", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        _of_account("fk_passkeys_account_id_accounts"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
    )
    op.create_index("ix_passkeys_account_id", "passkeys", ["account_id"], unique=False)
    op.create_table(
        "sign_ins",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("public_id", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.String(length=32), nullable=False),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent", sa.String(length=300), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        _of_account("fk_sign_ins_account_id_accounts"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_sign_ins")),
        sa.UniqueConstraint("public_id", name=op.f("uq_sign_ins_public_id")),
    )
    op.create_index("ix_sign_ins_account_id", "sign_ins", ["account_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_sign_ins_account_id", table_name="sign_ins")
    op.drop_table("sign_ins")
    op.drop_index("ix_passkeys_account_id", table_name="passkeys")
    op.drop_table("passkeys")
    op.drop_index("ix_merged_visitors_account_id", table_name="merged_visitors")
    op.drop_table("merged_visitors")
    op.drop_index("ix_mail_links_account_id", table_name="mail_links")
    op.drop_table("mail_links")
    op.drop_index("ix_identities_account_id", table_name="identities")
    op.drop_table("identities")
    op.drop_table("invitations")
    op.drop_table("attempts")
    op.drop_table("accounts")
