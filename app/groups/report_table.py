"""Tables of a group's pages: shown as HTML, with bars for shares, and downloaded as CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Query

from app import i18n
from app.groups.models import Group
from app.i18n import gettext


@dataclass(frozen=True, slots=True)
class ReportWindow:
    """The time that a report is about: from ``since`` to before ``until``; None means no limit."""

    since: datetime | None
    until: datetime | None


PERIODS: Mapping[str, timedelta | None] = {"7": timedelta(days=7), "30": timedelta(days=30), "all": None}
"""By the word in a URL: how far a report looks back. ``all`` is the time of the group."""
DEFAULT_PERIOD = "30"


def report_window(group: Group, period: str, at: datetime) -> ReportWindow:
    """The part of the group's time that a period covers. An unknown one means the default."""
    back = PERIODS.get(period, PERIODS[DEFAULT_PERIOD])
    since = [moment for moment in (group.starts_at, at - back if back else None) if moment is not None]
    return ReportWindow(max(since, default=None), group.ends_at)


@dataclass(frozen=True, slots=True)
class ReportLink:
    """A link to a route."""

    route: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class ReportCell:
    """A cell of a table."""

    text: str
    value: float | datetime | None = None
    """What the CSV and the API have instead of the text."""
    share: float | None = None
    """Of all learners of the group, from 0 to 1: drawn as a bar below the text."""
    link: ReportLink | None = None

    @property
    def raw(self) -> float | str:
        """For programs: a number where the cell counts or measures something."""
        if isinstance(self.value, datetime):
            return self.value.isoformat()
        return self.text if self.value is None else self.value

    def csv(self, zone: ZoneInfo) -> str:
        """For spreadsheets: moments as the time of this zone."""
        return csv_moment(self.value, zone) if isinstance(self.value, datetime) else str(self.raw)


SortColumn = Annotated[int | None, Query(ge=0, le=20)]
"""The column that a page's table is sorted by, from 0."""
Reversed = Annotated[bool, Query()]


@dataclass(frozen=True, slots=True)
class TableOrder:
    """The column that a reader has sorted a table by. ``reverse``: opposite to the column's own order."""

    column: int
    reverse: bool
    descending: bool


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with a title. The first column names the row."""

    name: str
    """Its name in URLs and file names."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[ReportCell]]
    empty: str
    """What to say if there are no rows."""
    hint: str = ""
    """How to read it."""
    last_first: bool = False
    """Whether phones show the last column first, because the table is read for it."""
    has_addresses: bool = False
    """Whether the CSV has the addresses to which the first column links."""
    order: TableOrder | None = None
    """None: the order of the report itself."""

    @property
    def numeric_columns(self) -> frozenset[int]:
        """The columns of numbers, which pages show at the end of their column."""
        texts = {n for row in self.rows for n, cell in enumerate(row) if not isinstance(cell.value, int | float)}
        return frozenset(range(1, len(self.columns))) - texts

    @property
    def has_bars(self) -> bool:
        return any(cell.share is not None for row in self.rows for cell in row)

    def sorted_by(self, column: int | None, *, reverse: bool) -> ReportTable:
        """The table sorted by a column: the largest number first, or the oldest moment, or the first text.

        Rows whose cell is empty come last. If the table does not have the column, nothing changes.
        """
        if column is None or not 0 <= column < len(self.columns):
            return self
        said = [row for row in self.rows if row[column].text]
        descending = reverse != any(isinstance(row[column].value, int | float) for row in said)
        rows = sorted(said, key=lambda row: _sort_key(row[column]), reverse=descending)
        rows += [row for row in self.rows if not row[column].text]
        return replace(self, rows=rows, order=TableOrder(column, reverse, descending))

    def csv_rows(self, zone: ZoneInfo, address: Callable[[ReportLink], str] | None = None) -> Iterable[Sequence[str]]:
        """The header and the rows, as plain text. ``address`` gives the one that a link leads to."""
        moments = {n for row in self.rows for n, cell in enumerate(row) if isinstance(cell.value, datetime)}
        header = [in_zone(title, zone) if n in moments else title for n, title in enumerate(self.columns)]
        to_address = address if self.has_addresses else None
        yield [*header, gettext("Address")] if to_address else header
        for row in self.rows:
            link = row[0].link
            addresses = [to_address(link)] if to_address and link else []
            yield [cell.csv(zone) for cell in row] + addresses


def _sort_key(cell: ReportCell) -> tuple[float, str]:
    """Numbers and moments by size, and texts by their letters."""
    value = cell.value.timestamp() if isinstance(cell.value, datetime) else cell.value
    return (value, "") if value is not None else (0, cell.text.casefold())


def csv_moment(moment: datetime, zone: ZoneInfo) -> str:
    """A moment as spreadsheets read it: date and time in this zone, without its name. Pure."""
    return moment.astimezone(zone).replace(tzinfo=None, microsecond=0).isoformat(" ")


def in_zone(title: str, zone: ZoneInfo) -> str:
    """The heading of a column of moments. Pure."""
    return f"{title} ({zone.key})"


def count_cell(count: int, learners: int = 0, link: ReportLink | None = None) -> ReportCell:
    """A number, and the share that it is of all learners of the group."""
    return ReportCell(i18n.number(count), count, count / learners if learners else None, link)
