"""Who may use which route: every route by name, and nothing by default. A test walks the routes."""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """Who a route is for."""

    public = "public"
    """The same for everyone."""
    learner = "learner"
    """Shows or changes only what belongs to the learner who asks, with or without an account; others' is not found."""
    account = "account"
    """The same, for who is signed in."""
    instructor = "instructor"
    admin = "admin"


ACCESS: dict[str, Access] = {
    "static": Access.public,
    "healthz": Access.public,
    "readyz": Access.public,
    "root": Access.public,
    "home": Access.public,
    "course": Access.public,
    "lesson": Access.public,
    "lesson_source": Access.public,
    "lesson_asset": Access.public,
    "progress_header": Access.learner,
    "progress_awards": Access.learner,
    "lesson_end": Access.learner,
    "achievements": Access.learner,
    "learner_profile": Access.public,
    "comments": Access.public,
    "comment": Access.public,
    "reply_form": Access.public,
    "create_comment": Access.account,
    "comment_form": Access.account,
    "comment_history": Access.account,
    "change_comment": Access.account,
    "delete_comment": Access.account,
    "react_to_comment": Access.account,
    "report_comment": Access.account,
    "comment_handles": Access.account,
    "comments_of": Access.public,
    "person": Access.public,
    "moderation": Access.instructor,
    "moderate_comment": Access.instructor,
    "feedback": Access.public,
    "send_feedback": Access.learner,
    "feedback_thanks": Access.public,
    "lesson_vote": Access.learner,
    "vote_on_lesson": Access.learner,
    "feedback_inbox": Access.instructor,
    "handle_feedback": Access.instructor,
    "feedback_votes": Access.instructor,
    "notebook": Access.learner,
    "create_run": Access.learner,
    "list_runs": Access.learner,
    "show_run": Access.learner,
    "run_events": Access.learner,
    "run_stream": Access.learner,
    "run_display": Access.learner,
    "stop_run": Access.learner,
    "progress_marks": Access.learner,
    "progress_news": Access.learner,
    "progress_outline": Access.learner,
    "session_panel": Access.learner,
    "session_start": Access.learner,
    "session_keep": Access.learner,
    "session_restart": Access.learner,
    "session_interrupt": Access.learner,
    "session_fault": Access.learner,
    "sign_in_page": Access.public,
    "sign_in": Access.public,
    "sign_up_page": Access.public,
    "sign_up": Access.public,
    "sign_out": Access.public,
    "account_menu": Access.learner,
    "bell": Access.learner,
    "notifications_stream": Access.account,
    "notifications": Access.account,
    "notification": Access.account,
    "read_notifications": Access.account,
    "begin_mails": Access.account,
    "unsubscribe_page": Access.public,
    "unsubscribe": Access.public,
    "forgotten_page": Access.public,
    "forgotten": Access.public,
    "mail_link_page": Access.public,
    "mail_link": Access.public,
    "settings_page": Access.account,
    "settings_profile": Access.account,
    "security_page": Access.account,
    "change_password": Access.account,
    "change_email": Access.account,
    "end_sign_ins": Access.account,
    "passkey_options": Access.public,
    "passkey_sign_in": Access.public,
    "new_passkey_options": Access.account,
    "add_passkey": Access.account,
    "passkey_page": Access.account,
    "rename_passkey": Access.account,
    "remove_passkey": Access.account,
    "data_page": Access.account,
    "export_data": Access.account,
    "delete_account": Access.account,
}
