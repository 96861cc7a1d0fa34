"""``python -m runners.datasets``: the operator's tool for the cache, on a machine that has the runner's packages."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from runners.datasets.cache import Cache, CacheState, DamagedDataSet
from runners.datasets.catalog import Catalog, DataSet, DataSetError, find_data_set, read_catalog
from runners.datasets.download import DownloadProgress
from runners.datasets.fetch import Fetcher
from runners.datasets.prepared import prepare

_SERVED = {
    CacheState.whole: "real",
    CacheState.absent: "stand-in",
    CacheState.damaged: "refused",
}
"""What a session gets, by the state of the cache."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 only if everything succeeded."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace, Cache, Catalog], int] = options.command
    try:
        return command(options, Cache(options.cache), read_catalog())
    except DataSetError as e:
        print(e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Files that were downloaded completely are kept for the next fetch.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lockstep datasets", description="The data sets that sandboxes can load.")
    default = Path(os.environ.get("LOCKSTEP_DATA_DIR", "data")) / "datasets"
    parser.add_argument("--cache", type=Path, default=default, help="folder of the cache (default: %(default)s)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="every data set, and whether sessions get the real one")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(command=_list)
    fetching = commands.add_parser("fetch", help="download, verify, and cache the real files")
    fetching.add_argument("names", nargs="*", metavar="NAME")
    fetching.add_argument("--all", action="store_true", help="every data set in the catalog")
    fetching.add_argument("--source", help="a mirror URL or a directory to use instead of the catalog's URLs")
    fetching.set_defaults(command=_fetch)
    verifying = commands.add_parser("verify", help="compare every cached file with its digest")
    verifying.add_argument("names", nargs="*", metavar="NAME")
    verifying.set_defaults(command=_verify)
    preparing = commands.add_parser(
        "prepare", help="prepare for sandboxes now; the runner otherwise does it when needed"
    )
    preparing.add_argument("names", nargs="*", metavar="NAME")
    preparing.set_defaults(command=_prepare)
    return parser


def _list(options: argparse.Namespace, cache: Cache, catalog: Catalog) -> int:
    rows = [_row(cache, data_set) for data_set in catalog.values()]
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for row in rows:
        megabytes = f"{int(str(row['bytes'])) / 1_000_000:.1f} MB"
        print(f"{row['name']:<20}{row['served']:<10}{megabytes:>9}  {row['title']}; licence: {row['licence']}")
        if row["problem"]:
            print(f"{'':<20}{row['problem']}")
    return 0


def _row(cache: Cache, data_set: DataSet) -> dict[str, str | int]:
    state, problem = cache.glance(data_set)
    return {
        "name": data_set.name,
        "title": data_set.title,
        "served": _SERVED[state],
        "problem": problem,
        "bytes": data_set.size,
        "licence": data_set.licence,
        "homepage": data_set.homepage,
        "folder": str(cache.folder(data_set)),
    }


def _fetch(options: argparse.Namespace, cache: Cache, catalog: Catalog) -> int:
    if bool(options.names) == options.all:
        print(f"Name data sets, or use --all. Known: {', '.join(catalog)}.", file=sys.stderr)
        return 2
    wanted = list(catalog.values()) if options.all else [find_data_set(catalog, name) for name in options.names]
    fetcher = Fetcher(cache, options.source, DownloadProgress(sys.stderr))
    failed = 0
    for data_set in wanted:
        try:
            new = fetcher.fetch(data_set)
        except DataSetError as e:
            print(e, file=sys.stderr)
            failed += 1
            continue
        prepare(cache.root, {data_set.name: data_set})
        print(f"{data_set.title}: {'verified and ready' if new else 'already cached and verified'}.")
    return 1 if failed else 0


def _verify(options: argparse.Namespace, cache: Cache, catalog: Catalog) -> int:
    failed = 0
    for data_set in [find_data_set(catalog, name) for name in options.names] or list(catalog.values()):
        if not cache.present(data_set):
            print(f"{data_set.name}: not in the cache; its stand-in is served.")
            continue
        try:
            cache.verify(data_set)
            print(f"{data_set.name}: every file is valid.")
        except DamagedDataSet as e:
            print(e, file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def _prepare(options: argparse.Namespace, cache: Cache, catalog: Catalog) -> int:
    wanted = {name: find_data_set(catalog, name) for name in options.names or catalog}
    found = prepare(cache.root, wanted)
    for one in found:
        word = "ready" if one.prepared else "not prepared"
        print(f"{one.name}: {_SERVED[one.state]}, {word}{': ' + one.detail if one.detail else ''}")
    return 0 if all(one.prepared for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
