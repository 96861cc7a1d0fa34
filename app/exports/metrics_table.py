"""The metrics of a run as a small text table, which notebooks show instead of a chart. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runners.wire.protocol import MetricEvent

MAX_ROWS = 20
MAX_COLUMNS = 8


def metrics_table(metrics: Sequence[MetricEvent]) -> str:
    """The metrics per epoch, or else per step: at most 20 rows, evenly spaced. Empty without metrics."""
    per = "epoch" if any(metric.per == "epoch" for metric in metrics) else "step"
    rows = [metric for metric in metrics if metric.per == per]
    if not rows:
        return ""
    shown = _sample_evenly(rows)
    names = list(dict.fromkeys(name for row in shown for name in row.values))[:MAX_COLUMNS]
    lanes, trainings = any(row.lane for row in shown), any(row.training for row in shown)
    head = [per, *(["training"] if trainings else []), *(["lane"] if lanes else []), *names]
    body = [
        [
            str(row.step),
            *([row.training or ""] if trainings else []),
            *([row.lane or ""] if lanes else []),
            *(_format_value(row.values.get(name)) for name in names),
        ]
        for row in shown
    ]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(map(str.rjust, line, widths)).rstrip() for line in (head, *body)]
    if len(shown) < len(rows):
        lines.append(f"({len(shown)} of {len(rows)} rows, evenly spaced)")
    return "\n".join(lines)


def _sample_evenly(rows: list[MetricEvent]) -> list[MetricEvent]:
    if len(rows) <= MAX_ROWS:
        return rows
    return [rows[round(i * (len(rows) - 1) / (MAX_ROWS - 1))] for i in range(MAX_ROWS)]


def _format_value(value: float | str | None) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value or ""
