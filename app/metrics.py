"""What the application counts and measures while it runs, for Prometheus.

``docs/operate/monitoring.md`` lists every metric. A label has few values, all of them our own words: never a path, an
ID, or anything that a person typed. With several web processes, ``PROMETHEUS_MULTIPROC_DIR`` names a folder in which
each keeps its numbers, and any of them can add up all.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series
REGISTRY = CollectorRegistry()

_WAIT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_RESPONSE_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10)
_RUN_S = (0.05, 0.25, 1, 5, 15, 30, 60, 300, 900, 3600)

HTTP_REQUESTS = Counter(
    "lockstep_http_requests",
    "Requests, by method, template of the route, and status. 499: the browser left before the response.",
    ("method", "route", "status"),
    registry=REGISTRY,
)
HTTP_RESPONSE_SECONDS = Histogram(
    "lockstep_http_response_seconds",
    "From the request to the beginning of its response, by method and template of the route.",
    ("method", "route"),
    buckets=_RESPONSE_S,
    registry=REGISTRY,
)
OPEN_STREAMS = Gauge(
    "lockstep_open_streams",
    "Streams of server-sent events that are open: live output and the bell.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
RUNS = Counter(
    "lockstep_runs",
    "Runs and judgements that have ended, by outcome.",
    ("outcome",),
    registry=REGISTRY,
)
RUN_WAIT_SECONDS = Histogram(
    "lockstep_run_wait_seconds",
    "From the runner accepting a run to the start of its code: the queue, and the start of a session.",
    buckets=_WAIT_S,
    registry=REGISTRY,
)
FIRST_OUTPUT_SECONDS = Histogram(
    "lockstep_run_first_output_seconds",
    "From the runner accepting a run to its first text, display or error.",
    buckets=_WAIT_S,
    registry=REGISTRY,
)
RUN_SECONDS = Histogram(
    "lockstep_run_seconds",
    "From the start of a run's code to its end.",
    buckets=_RUN_S,
    registry=REGISTRY,
)
EVENT_LAG_SECONDS = Histogram(
    "lockstep_event_lag_seconds",
    "From storing events of a run to sending them to a browser that waits for them.",
    buckets=_WAIT_S,
    registry=REGISTRY,
)
CONNECTIONS_IN_USE = Gauge(
    "lockstep_database_connections_in_use",
    "Connections to the database that requests and jobs hold now.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
CONNECTIONS_LIMIT = Gauge(
    "lockstep_database_connections_limit",
    "The most connections that the web processes may hold together.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
SECURITY_EVENTS = Counter(
    "lockstep_security_events",
    "Entries of the security log, by event.",
    ("event",),
    registry=REGISTRY,
)
