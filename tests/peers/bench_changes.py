#!/usr/bin/env python3
"""Changes a table of orders, with deltaonce and with Python deltalake in turn, and compares time, memory and bytes.

  scripts/bench DELTAONCE changes [--rows 10000000] [--rounds 3] [--only SHAPE]... [--tables ordered,shuffled]
                                  [--variants plain,vectors] [--work DIR] [--json FILE]

The shapes:

  merge-1k        newer versions of 1,000 orders, spread over the table
  merge-100k      newer versions of 100,000 orders, spread over the table
  merge-newest    newer versions of the 10,000 orders that were added last
  insert-new      10,000 orders that the table does not hold
  replace-day     newer versions of all orders of 2026-06-15
  replace-same    the orders of 2026-06-15, as they are
  skip            an append that the log of a table of 10,000 commits records, beside `deltaonce show`, which opens the
                  table and counts its 10,000 files

The table is made once, of 20 files, with the orders in the sequence of their ids (ordered) or with the ids spread over
all files (shuffled), and kept in DIR (default: the project's cache). Each round changes fresh copies: deltaonce one
without deletion vectors (plain) and one with them (vectors), deltalake one without; then each does the same load again.
In the first round DuckDB compares the copies, row by row; a difference ends the benchmark.

What is counted:

  time     of deltaonce, the whole process; of deltalake, opening the table, reading the source and the operation, not
           the start of Python and its imports. Of several rounds, the median.
  ratio    the time of deltalake divided by that of deltaonce.
  memory   the peak of the process (ru_maxrss), Python and its imports included. Of several rounds, the greatest.
  bytes    what read and write calls of the process moved (rchar and wchar in /proc/PID/io), whether or not the page
           cache answers them. What deltalake's imports read is measured by a run that only imports, and taken off.

Tables and sources are in the page cache before each run, and what was written before is on disk. The skip is of what
the last commit records, and of what one in the middle does, with checkpoints every 100 commits (as deltalake writes
them) and with only the first of these. Give a release build for figures that mean something.
"""

import argparse
import json
import pathlib
import statistics
import sys

from bench_common import apart, cache, log_of, measure, positive, print_table, program, save, several
from bench_loads import PEER_NAME, VARIANTS, Bench, Load, said, summary
from bench_tables import LEAST_ROWS, ONCE, STREAM, make_long_log, make_orders

SHAPES = {
    "merge-1k": Load("merge", "spread-1k"),
    "merge-100k": Load("merge", "spread-100k"),
    "merge-newest": Load("merge", "newest-10k"),
    "insert-new": Load("insert", "new-10k"),
    "replace-day": Load("replace", "day-newer"),
    "replace-same": Load("replace", "day"),
}
TABLES = ("ordered", "shuffled")
FILES = 20
COMMITS = 10_000
LOGS = {"every 100": range(100, COMMITS, 100), "only the first": [100]}
SKIPS = 5
HEADS = [
    *("shape", "table", "variant", "ours s", "deltalake s", "ratio", "ours MiB", "deltalake MiB"),
    *("ours read/written MB", "deltalake read/written MB"),
    *("again ours s", "new version", "again deltalake s", "new version"),
]


def main():
    arguments = parsed()
    chosen = arguments.only or [*SHAPES, "skip"]
    results, skips = [], []
    if any(shape in SHAPES for shape in chosen):
        bench = Bench(arguments.deltaonce, arguments.variants, arguments.work)
        for kind in arguments.tables:
            folder = arguments.work / f"{kind}-{arguments.rows}"
            apart(make_orders, folder, arguments.rows, FILES, kind == "shuffled")
            for shape in (shape for shape in SHAPES if shape in chosen):
                print(f"\n{shape}, {arguments.rows:,} rows {kind}", flush=True)
                results += change(bench, shape, folder, kind, arguments.rounds)
        bench.remove_copies()
    if "skip" in chosen:
        skips = [skip for log in LOGS for skip in skip_in(arguments, log)]
    say(results, skips)
    save(arguments.json, {"rows": arguments.rows, "rounds": arguments.rounds, "changes": results, "skips": skips})


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltaonce", type=pathlib.Path, help="the program to measure")
    parser.add_argument("--rows", type=positive, default=10_000_000, help=f"at least {LEAST_ROWS}")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--only", action="append", choices=[*SHAPES, "skip"], help="repeatable")
    parser.add_argument("--tables", type=several(*TABLES), default=TABLES)
    parser.add_argument("--variants", type=several(*VARIANTS), default=VARIANTS)
    parser.add_argument("--work", type=pathlib.Path, default=cache() / "bench")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures, each round's too, to this file")
    arguments = parser.parse_args()
    arguments.deltaonce = program(parser, arguments.deltaonce)
    if arguments.rows < LEAST_ROWS:
        parser.error(f"--rows {arguments.rows} is too few for the shapes; give at least {LEAST_ROWS}")
    return arguments


def change(bench, shape, folder, kind, rounds):
    """A result for each variant of deltaonce's copy."""
    first, again = ({name: [] for name in bench.names} for _ in range(2))
    for number in range(rounds):
        for name in bench.names:
            bench.copy(name, folder)
            for of, what in ((first, "load"), (again, "again")):
                run = bench.load(name, SHAPES[shape], folder)
                of[name].append(run)
                version = "a new version" if run["new_version"] else "no new version"
                print(f"  round {number + 1}  {name:<9}  {what:<5}  {said(run)}  {version}", flush=True)
        if number == 0:
            compare(bench, first, again)
    return [
        {"shape": shape, "table": kind, "variant": name, "first": pair(first, name), "again": pair(again, name)}
        for name in bench.names[:-1]
    ]


def compare(bench, first, again):
    for name in bench.names[:-1]:
        bench.compare(name, first[name][0], first[PEER_NAME][0])
        if again[name][0]["new_version"]:
            bench.compare(name, again[name][0], again[PEER_NAME][0])
    print("  DuckDB finds the same rows in all copies", flush=True)


def pair(runs, variant):
    sides = {"ours": runs[variant], PEER_NAME: runs[PEER_NAME]}
    return {side: {**summary(of), "rounds": of} for side, of in sides.items()}


def skip_in(arguments, log):
    """A skip that the last commit records and one that the commit in the middle does."""
    folder = arguments.work / f"log-{COMMITS}-{log.replace(' ', '-')}"
    apart(make_long_log, folder, COMMITS, LOGS[log])
    print(f"\nskip, {COMMITS:,} commits, checkpoints: {log}", flush=True)
    identities = {"in the last commit": f"{STREAM}={COMMITS - 1}", "in the middle": f"{ONCE}=0"}
    for recorded, identity in identities.items():
        skips, opens = timed_skips(arguments, folder, identity)
        wall, opening = (statistics.median(times) for times in (skips, opens))
        print(f"  recorded {recorded:<18}  skip {wall * 1000:6.1f} ms  show {opening * 1000:6.1f} ms", flush=True)
        yield {
            "checkpoints": log, "recorded": recorded, "skip": wall, "show": opening,
            "rounds": {"skip": skips, "show": opens},
        }  # fmt: skip


def timed_skips(arguments, folder, identity):
    table, entries = folder / "table", len(log_of(folder / "table"))
    end = ["--output", "json", "--quiet"]
    skips, opens = [], []
    for _ in range(arguments.rounds * SKIPS):
        run = measure([arguments.deltaonce, "append", table, folder / "orders.parquet", "--txn", identity, *end])
        outcome = json.loads(run["output"])["outcome"]
        if outcome != "skipped" or len(log_of(table)) != entries:
            sys.exit(f"the append of {identity} to {table} was to be skipped and ended as {outcome}")
        skips.append(run["wall"])
        opens.append(measure([arguments.deltaonce, "show", table, *end])["wall"])
    return skips, opens


def say(results, skips):
    if results:
        print()
        print_table(HEADS, [row(result) for result in results])
    if skips:
        print()
        heads = ["skip: checkpoints", "recorded", "skip ms", "show ms", "difference ms"]
        print_table(heads, [skip_row(skip) for skip in skips])


def row(result):
    ours, peers = result["first"]["ours"], result["first"][PEER_NAME]
    again = [result["again"]["ours"], result["again"][PEER_NAME]]
    return [
        *(result[what] for what in ("shape", "table", "variant")),
        *(f"{run['wall']:.2f}" for run in (ours, peers)),
        f"{peers['wall'] / ours['wall']:.2f}",
        *(f"{run['rss']:,.0f}" for run in (ours, peers)),
        *(f"{run['read'] / 1e6:,.1f}/{run['written'] / 1e6:,.1f}" for run in (ours, peers)),
        *(text for run in again for text in (f"{run['wall']:.2f}", "yes" if run["new_version"] else "no")),
    ]


def skip_row(skip):
    times = (skip["skip"], skip["show"], skip["skip"] - skip["show"])
    return [skip["checkpoints"], skip["recorded"], *(f"{time * 1000:.1f}" for time in times)]


if __name__ == "__main__":
    main()
