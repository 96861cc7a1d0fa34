"""Where else a lesson is: its source on a code host, the host's editor, and its notebook in Colab. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.model import Lesson
from app.settings import Settings

_COLAB = "https://colab.research.google.com/github"
_HOST_NAMES = {"github.com": "GitHub", "gitlab.com": "GitLab"}


@dataclass(frozen=True, slots=True)
class SourceLinks:
    """Addresses for a lesson's page; empty where the operator names no repository."""

    view: str = ""
    edit: str = ""
    host: str = ""
    """The name of the code host."""
    colab: str = ""


def source_links(lesson: Lesson, settings: Settings) -> SourceLinks:
    """The links of a lesson. GitHub and GitLab have their editor at the same address, with another word in it."""
    name = "lesson.md" if lesson.language == DEFAULT_LANGUAGE else f"lesson.{lesson.language}.md"
    base, notebooks = settings.lessons_source, settings.colab_notebooks
    view = f"{base}/{lesson.key}/{name}" if base else ""
    edit = view.replace("/blob/", "/edit/", 1) if "/blob/" in base else ""
    host = urlsplit(base).hostname or ""
    colab = f"{_COLAB}{urlsplit(notebooks).path}/{lesson.key}.ipynb" if notebooks else ""
    return SourceLinks(view, edit, _HOST_NAMES.get(host, host), colab)
