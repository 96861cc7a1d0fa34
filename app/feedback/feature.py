"""Problem reports and lesson votes."""

from __future__ import annotations

from app.feature import Feature
from app.feedback.inbox_routes import router as inbox_router
from app.feedback.personal_data import RETENTION_RULES, erase_feedback, export_feedback, move_feedback
from app.feedback.routes import router
from app.web.access import Access

FEATURE = Feature(
    name="feedback",
    routers=(router, inbox_router),
    access={
        "feedback": Access.public,
        "send_feedback": Access.learner,
        "feedback_thanks": Access.public,
        "lesson_vote": Access.learner,
        "vote_on_lesson": Access.learner,
        "feedback_inbox": Access.instructor,
        "update_problem": Access.instructor,
        "feedback_votes": Access.instructor,
    },
    exporters={"feedback": export_feedback},
    erasers=(erase_feedback,),
    mergers=lambda _app: (move_feedback,),
    retention_rules=RETENTION_RULES,
)
