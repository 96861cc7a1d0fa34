"""Where else a lesson is: its source on a code host, the host's editor, and its notebook in Colab. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.added_courses import AddedCourse
from app.lessons.model import Lesson
from app.settings import Settings

_COLAB = "https://colab.research.google.com/github"
_HOST_NAMES = {
    "github.com": "GitHub",
    "gitlab.com": "GitLab",
    "codeberg.org": "Codeberg",
    "bitbucket.org": "Bitbucket",
}
_COMMIT_PAGES = {
    "github.com": "blob",
    "gitlab.com": "-/blob",
    "codeberg.org": "src/commit",
    "bitbucket.org": "src",
}
"""What is between a repository and a commit in the address of a file."""
_REPOSITORY = re.compile(r"(?:(?!\.{1,2}(?:/|$))[A-Za-z0-9_.-]+/)+(?!\.{1,2}$)[A-Za-z0-9_.-]+")

_SCP_ADDRESS = re.compile(r"[A-Za-z0-9_.-]+@(?P<host>[A-Za-z0-9.-]+):(?P<path>[^:]+)")
"""``git@host:path``."""


@dataclass(frozen=True, slots=True)
class SourceLinks:
    """Addresses for a lesson's page; empty where the operator names no repository."""

    view: str = ""
    edit: str = ""
    host: str = ""
    """The name of the code host."""
    colab: str = ""


def source_links(lesson: Lesson, settings: Settings, origin: AddedCourse | None) -> SourceLinks:
    """The links of a lesson. ``origin`` is where its course comes from, if ``lockstep course add`` has copied it."""
    if lesson.source_path.is_relative_to(settings.added_courses_dir):
        return _links_to_commit(lesson, settings, origin)
    name = "lesson.md" if lesson.language == DEFAULT_LANGUAGE else f"lesson.{lesson.language}.md"
    base, notebooks = settings.lessons_source, settings.colab_notebooks
    view = f"{base}/{lesson.key}/{name}" if base else ""
    # GitHub and GitLab have their editor at the same address, with another word in it.
    edit = view.replace("/blob/", "/edit/", 1) if "/blob/" in base else ""
    colab = f"{_COLAB}{urlsplit(notebooks).path}/{lesson.key}.ipynb" if notebooks else ""
    return SourceLinks(view, edit, _host_name(base), colab)


def _links_to_commit(lesson: Lesson, settings: Settings, origin: AddedCourse | None) -> SourceLinks:
    """A commit cannot be edited, and nobody has said where its notebooks are."""
    base = _commit_page(origin) if origin is not None else ""
    if origin is None or not base:
        return SourceLinks()
    path = PurePosixPath(origin.folder) / lesson.source_path.relative_to(settings.added_courses_dir / lesson.course)
    return SourceLinks(view=f"{base}/{quote(path.as_posix())}", host=_host_name(base))


def _commit_page(origin: AddedCourse) -> str:
    """Where a code host shows the commit that is served; empty for a host whose addresses are not known."""
    host, path = _host_and_path(origin.url)
    repository = path.strip("/").removesuffix(".git")
    if host not in _COMMIT_PAGES or not _REPOSITORY.fullmatch(repository):
        return ""
    return f"https://{host}/{repository}/{_COMMIT_PAGES[host]}/{origin.commit}"


def _host_and_path(url: str) -> tuple[str, str]:
    """The host that people know a repository by, and its path there."""
    if (scp := _SCP_ADDRESS.fullmatch(url)) is not None:
        return scp["host"].lower(), scp["path"]
    try:
        parts = urlsplit(url)
        usual = parts.port in (None, 22 if parts.scheme == "ssh" else 443)
    except ValueError:
        return "", ""
    return (parts.hostname or "", parts.path) if usual and parts.scheme in ("https", "ssh") else ("", "")


def _host_name(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _HOST_NAMES.get(host, host)
