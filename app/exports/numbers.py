"""The numbers of a run's trainings as a small table of text: what a notebook shows where the page has a chart. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runners.protocol import Metric

MOST_ROWS = 20
MOST_COLUMNS = 8


def numbers_table(metrics: Sequence[Metric]) -> str:
    """The epochs, or the steps where there were none: at most 20 rows, evenly spread. Empty without any metric."""
    per = "epoch" if any(metric.per == "epoch" for metric in metrics) else "step"
    rows = [metric for metric in metrics if metric.per == per]
    if not rows:
        return ""
    shown = _spread(rows)
    names = list(dict.fromkeys(name for row in shown for name in row.values))[:MOST_COLUMNS]
    lanes = any(row.lane for row in shown)
    head = [per, *(["lane"] if lanes else []), *names]
    body = [
        [str(row.step), *([row.lane or ""] if lanes else []), *(_reading(row.values.get(name)) for name in names)]
        for row in shown
    ]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(map(str.rjust, line, widths)).rstrip() for line in (head, *body)]
    if len(shown) < len(rows):
        lines.append(f"({len(shown)} of {len(rows)} rows, evenly spread)")
    return "\n".join(lines)


def _spread(rows: list[Metric]) -> list[Metric]:
    if len(rows) <= MOST_ROWS:
        return rows
    return [rows[round(i * (len(rows) - 1) / (MOST_ROWS - 1))] for i in range(MOST_ROWS)]


def _reading(value: float | str | None) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value or ""
