"""Builds the request with which the runner judges submissions for an exercise."""

from __future__ import annotations

from app.lessons.model import Cell, Lesson
from runners.wire.protocol import Judgement, NeededCell


def judgement_of(lesson: Lesson, cell: Cell) -> Judgement:
    """The cells that an exercise needs, its solution, and its checks. Raises ValueError if the cell is not one."""
    if cell.exercise is None:
        raise ValueError(f"{lesson.key}#{cell.name} is no exercise")
    needed = [lesson.cell(name) for name in cell.exercise.needs]
    return Judgement(
        exercise=cell.name,
        needs=tuple(NeededCell(name=each.name, code=each.code) for each in needed if each is not None),
        solution=cell.exercise.solution,
        checks=cell.exercise.checks_source,
        seconds=cell.exercise.seconds,
    )
