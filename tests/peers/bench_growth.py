#!/usr/bin/env python3
"""Merges 10,000 orders into tables of more and more rows and files, with deltaonce and with Python deltalake in turn.

  scripts/bench DELTAONCE growth [--sizes 1000000,10000000,50000000] [--rows-per-file 500000]
                                 [--rows 10000000] [--files 20,200,2000] [--rounds 3]
                                 [--variants plain,vectors] [--work DIR] [--json FILE]

It merges newer versions of the 10,000 orders that were added last: the change stays as it is while the table grows,
first in rows (--sizes, in files of --rows-per-file), then in files (--rows, in so many --files). Each table is made in
DIR (default: the project's cache) and removed after its runs. The time is the median of the rounds: of deltaonce the
whole process, of deltalake the operation alone, as `changes --help` says. The growth is that time divided by that of
the smallest table. In the first round DuckDB counts the rows of each copy.
"""

import argparse
import pathlib
import shutil
import sys

from bench_common import apart, cache, positive, print_table, program, save, several
from bench_loads import VARIANTS, Bench, Load, counted_rows, said, summary
from bench_tables import LEAST_ROWS, make_orders

NEWEST = Load("merge", "newest-10k")


def main():
    arguments = parsed()
    by_rows = [(rows, -(-rows // arguments.rows_per_file)) for rows in arguments.sizes]
    by_files = [(arguments.rows, files) for files in arguments.files]
    bench = Bench(arguments.deltaonce, arguments.variants, arguments.work)
    results = {}
    for rows, files in dict.fromkeys(by_rows + by_files):
        results[rows, files] = merge_into(bench, arguments, rows, files)
    bench.remove_copies()
    for series in (by_rows, by_files):
        print()
        print_table(*growth(bench.names, series, results))
    tables = [{"rows": rows, "files": files, **result} for (rows, files), result in results.items()]
    save(arguments.json, {"rounds": arguments.rounds, "tables": tables})


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltaonce", type=pathlib.Path, help="the program to measure")
    parser.add_argument("--sizes", type=numbers, default=[1_000_000, 10_000_000, 50_000_000])
    parser.add_argument("--rows-per-file", type=positive, default=500_000)
    parser.add_argument("--rows", type=positive, default=10_000_000)
    parser.add_argument("--files", type=numbers, default=[20, 200, 2_000])
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--variants", type=several(*VARIANTS), default=VARIANTS)
    parser.add_argument("--work", type=pathlib.Path, default=cache() / "bench")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures, each round's too, to this file")
    arguments = parser.parse_args()
    arguments.deltaonce = program(parser, arguments.deltaonce)
    if min(*arguments.sizes, arguments.rows) < LEAST_ROWS:
        parser.error(f"a table needs at least {LEAST_ROWS} rows")
    return arguments


def numbers(text):
    return sorted(positive(part) for part in text.split(","))


def merge_into(bench, arguments, rows, files):
    """The runs of each name on a table that is made for them, summed up."""
    folder = arguments.work / "growing"
    shutil.rmtree(folder, ignore_errors=True)
    apart(make_orders, folder, rows, files)
    runs = {name: [] for name in bench.names}
    for number in range(arguments.rounds):
        for name in bench.names:
            table = bench.copy(name, folder)
            run = bench.load(name, NEWEST, folder)
            runs[name].append(run)
            print(f"  round {number + 1}  {name:<9}  {said(run)}", flush=True)
            if number == 0 and (counted := apart(counted_rows, table)) != rows:
                sys.exit(f"after the merge the copy {name} holds {counted:,} rows and not {rows:,}")
    shutil.rmtree(folder)
    return {name: {**summary(of), "rounds": of} for name, of in runs.items()}


def growth(names, series, results):
    """The heads and rows of the printed table of a series, the smallest first."""
    smallest = results[series[0]]
    heads = ["rows", "files", *(head for name in names for head in (f"{name} s", "growth"))]
    rows = []
    for rows_and_files in series:
        times = [(results[rows_and_files][name]["wall"], smallest[name]["wall"]) for name in names]
        figures = (text for wall, least in times for text in (f"{wall:.2f}", f"{wall / least:.2f}"))
        rows.append([*(f"{number:,}" for number in rows_and_files), *figures])
    return heads, rows


if __name__ == "__main__":
    main()
