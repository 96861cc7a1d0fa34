"""JSON Schemas of a lesson's front matter and of ``course.toml``, with which editors complete and check them."""

from __future__ import annotations

from typing import Any

from app.i18n import LANGUAGE_CODES
from app.lessons.front_matter import MAX_MACHINE_OPTIONS, MAX_SLUG_LENGTH, MYST_KEYS, SLUG_PATTERN
from app.lessons.model import LessonStatus

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SLUG = {"type": "string", "pattern": f"^{SLUG_PATTERN.pattern}$", "maxLength": MAX_SLUG_LENGTH}
_SLUGS = {"type": "array", "items": _SLUG, "uniqueItems": True}
_MACHINE = {"type": "string", "examples": ["cpu", "gpu:4", "tpu:8", "workers:2", "workers:2xgpu:2", "ps:2+1"]}
_KERAS = {"enum": [2, 3]}
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}


def _localized(kind: dict[str, Any], untranslated: dict[str, Any]) -> dict[str, Any]:
    """A value in English, or one for each language."""
    languages = dict.fromkeys(LANGUAGE_CODES, kind) | {"en": untranslated}
    table = {"type": "object", "properties": languages, "required": ["en"], "additionalProperties": False}
    return {"oneOf": [untranslated, table]}


_LOCALIZED = _localized({"type": "string"}, _TEXT)
_LOCALIZED_LIST = _localized(_TEXTS, _TEXTS | {"minItems": 1})


def front_matter_schema() -> dict[str, Any]:
    """The schema of the front matter of an English lesson. A translation has only ``title`` and ``summary``."""
    options = {"minItems": 1, "maxItems": MAX_MACHINE_OPTIONS, "uniqueItems": True}
    keys: dict[str, dict[str, Any]] = {
        "title": _TEXT | {"description": "The title of the lesson. Default: its first heading."},
        "summary": _TEXT | {"description": "One or two sentences for the course map. Default: the first paragraph."},
        "minutes": {
            "type": "integer",
            "minimum": 1,
            "maximum": 600,
            "description": "How long the lesson takes. Default: an estimate.",
        },
        "tags": _SLUGS | {"description": "Topics in lowercase letters, digits, and hyphens."},
        "status": {
            "enum": [str(status) for status in LessonStatus],
            "default": str(LessonStatus.draft),
            "description": "Only instructors can see a draft.",
        },
        "publish_at": {
            "type": "string",
            "examples": ["2027-03-01", "2027-03-01T09:00+09:00"],
            "description": "When a published lesson becomes visible to learners. A date is midnight UTC.",
        },
        "topology": _MACHINE | {"default": "gpu:4", "description": "The machine on which cells start."},
        "topologies": {
            "type": "array",
            "items": _MACHINE,
            **options,
            "description": "The machines that a learner may choose from.",
        },
        "keras": _KERAS | {"default": 3, "description": "The version of Keras with which cells start."},
        "kerases": {
            "type": "array",
            "items": _KERAS,
            **options,
            "description": "The versions of Keras that a learner may choose from.",
        },
        "requires": _SLUGS
        | {"description": "Lessons of the same course to read first, by the names of their folders."},
        "was": _SLUGS | {"description": "Former names of the lesson's folder: learners' work and old links follow."},
    }
    jupyter = {key: {"type": "object"} for key in ("jupyter", "jupytext", "kernelspec", "language_info")}
    myst: dict[str, dict[str, Any]] = {key: {"description": "Has no effect here."} for key in sorted(MYST_KEYS)}
    myst["description"] = _TEXT | {"description": "The summary, if there is no key of that name."}
    return {
        "$schema": _DRAFT,
        "title": "The front matter of a lesson",
        "type": "object",
        "properties": keys | jupyter | myst,
        "additionalProperties": False,
    }


def course_schema() -> dict[str, Any]:
    """The schema of ``course.toml``."""
    module = {
        "type": "object",
        "properties": {
            "slug": _SLUG | {"description": "The name of the module in addresses and in achievements."},
            "title": _LOCALIZED | {"description": "The title of the module."},
            "lessons": _SLUGS | {"description": "The folders of the lessons, in order."},
        },
        "required": ["slug", "title"],
        "additionalProperties": False,
    }
    return {
        "$schema": _DRAFT,
        "title": "The file of a course",
        "type": "object",
        "properties": {
            "title": _LOCALIZED | {"description": "The title of the course."},
            "summary": _LOCALIZED | {"description": "One or two sentences, shown on its page and where it is linked."},
            "audience": _LOCALIZED | {"description": "Who the course is for, in one or two sentences. May be missing."},
            "prerequisites": _LOCALIZED_LIST
            | {"description": "What learners need: what they should know, and equipment. A list; may be missing."},
            "outcomes": _LOCALIZED_LIST
            | {"description": "What learners will be able to do after the course. A list; may be missing."},
            "modules": {
                "type": "array",
                "items": module,
                "minItems": 1,
                "description": "In order: a section `[[modules]]` for each, with `slug`, `title` and `lessons`.",
            },
        },
        "required": ["title", "summary", "modules"],
        "additionalProperties": False,
    }
