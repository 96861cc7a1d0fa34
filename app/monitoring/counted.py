"""The metrics that this web process has counted or, where there are several, all of them together."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from app.metrics import REGISTRY

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable of prometheus-client that names the folder of all web processes."""


def counted_metrics() -> Iterable[Metric]:
    """All metrics of ``app.metrics``. A process that has ended still counts, but no longer holds anything."""
    folder = os.environ.get(SHARED_FOLDER)
    if not folder:
        return REGISTRY.collect()
    for gauges in Path(folder).glob("gauge_live*_*.db"):
        pid = gauges.stem.rpartition("_")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            mark_process_dead(int(pid), folder)  # type: ignore[no-untyped-call]
    return MultiProcessCollector(None, folder).collect()  # type: ignore[no-untyped-call,no-any-return]
