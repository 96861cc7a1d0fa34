"""What a command is about: a lesson or a course, by name or by path. Pure, but for looking whether a path exists."""

from __future__ import annotations

from pathlib import Path


def belongs_to(path: Path, root: Path, target: str) -> bool:
    """Whether a file is part of a lesson or course, given by its slug, as ``course/slug``, or as a path."""
    parts = path.relative_to(root).parts
    names = (parts[0], parts[1], f"{parts[0]}/{parts[1]}") if len(parts) > 2 else parts[:1]
    if target in names:
        return True
    place = Path(target).resolve()
    lesson = root.resolve() / Path(*parts[:2])
    return place.exists() and (lesson.is_relative_to(place) or (len(parts) > 2 and place.is_relative_to(lesson)))
