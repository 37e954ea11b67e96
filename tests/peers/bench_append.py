#!/usr/bin/env python3
"""Appends one big file to a new table, with deltaonce and with Python deltalake in turn, and compares time and memory.

  scripts/bench DELTAONCE append [--rows 10000000] [--rounds 3] [--only parquet|csv] [--work DIR]

The inputs are orders, made once and kept in DIR (default: the project's cache). Wall time of deltaonce is that of the
whole process; of deltalake only the write is counted, not the start of Python and its imports. Memory is the peak of
the process in both cases. Both write a table in DIR, which is removed after each run. Give a release build for figures
that mean something.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import time

from bench_common import apart, cache, log_of, measure, orders, positive, program, read_once

SCHEMA = (
    "order_id bigint, customer_id bigint, status string, amount double, qty int, note string, "
    "order_date date, source_updated_at timestamp, source_lsn bigint"
)
CHUNK = 500_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deltaonce", type=pathlib.Path, help="the program to measure")
    parser.add_argument("--rows", type=positive, default=10_000_000)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--only", choices=["parquet", "csv"])
    parser.add_argument("--work", type=pathlib.Path, default=cache() / "bench")
    arguments = parser.parse_args()
    arguments.deltaonce = program(parser, arguments.deltaonce)

    files = apart(make_inputs, arguments.work, arguments.rows)
    for kind, file in files.items():
        if arguments.only not in (None, kind):
            continue
        print(f"\nappend of {arguments.rows:,} rows, {file.stat().st_size / 1e6:,.0f} MB of {kind}")
        runs = {"deltaonce": [], "deltalake": []}
        for number in range(arguments.rounds):
            for name in runs:
                read_once(file)
                run = append(name, arguments, file)
                runs[name].append(run)
                print(f"  round {number + 1}  {name:<9}  {run['wall']:6.2f} s  {run['rss']:6,.0f} MiB", flush=True)
        medians = {name: statistics.median(run["wall"] for run in of) for name, of in runs.items()}
        peaks = {name: max(run["rss"] for run in of) for name, of in runs.items()}
        for name in runs:
            print(f"  median   {name:<9}  {medians[name]:6.2f} s  {peaks[name]:6,.0f} MiB at most")
        time_ratio, memory_ratio = (of["deltaonce"] / of["deltalake"] for of in (medians, peaks))
        print(f"  ratio    time {time_ratio:.2f}, memory {memory_ratio:.2f}")


def append(name, arguments, file):
    table = arguments.work / "table"
    shutil.rmtree(table, ignore_errors=True)
    if name == "deltaonce":
        command = [arguments.deltaonce, "append", table, file, "--write-id", "bench", "--schema", SCHEMA]
        command += ["--output", "json", "--quiet"]
    else:
        command = [sys.executable, __file__, "--peer", file, table]
    run = measure(command)
    rows = rows_in_log(table)
    if rows != arguments.rows:
        sys.exit(f"{name} wrote {rows} of {arguments.rows} rows")
    shutil.rmtree(table)
    return {**run, "wall": json.loads(run["output"])["wall_s"]} if name == "deltalake" else run


def rows_in_log(table):
    adds = (json.loads(line).get("add") for entry in log_of(table) for line in entry.open())
    return sum(json.loads(add["stats"])["numRecords"] for add in adds if add)


def peer(file, table):
    """Python deltalake as its users write it, streaming."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset
    from deltalake import write_deltalake

    start = time.perf_counter()
    if file.endswith(".parquet"):
        rows = pyarrow.dataset.dataset(file).scanner().to_reader()
    else:
        kinds = {
            "order_id": pa.int64(),
            "customer_id": pa.int64(),
            "status": pa.string(),
            "amount": pa.float64(),
            "qty": pa.int32(),
            "note": pa.string(),
            "order_date": pa.date32(),
            "source_updated_at": pa.timestamp("us", tz="UTC"),
            "source_lsn": pa.int64(),
        }
        rows = pyarrow.csv.open_csv(file, convert_options=pyarrow.csv.ConvertOptions(column_types=kinds))
    write_deltalake(table, rows, mode="append")
    print(json.dumps({"wall_s": time.perf_counter() - start}))


def make_inputs(work, rows):
    import numpy as np
    import pyarrow.csv
    import pyarrow.parquet

    work.mkdir(parents=True, exist_ok=True)
    files = {kind: work / f"orders-{rows}.{kind}" for kind in ("parquet", "csv")}
    if all(file.exists() for file in files.values()):
        return files
    print(f"making {rows:,} orders in {work}", flush=True)
    parts = {kind: work / f"{kind}.part" for kind in files}
    schema = orders(np.arange(1), 0, rows).schema
    with (
        pyarrow.parquet.ParquetWriter(parts["parquet"], schema) as parquet,
        pyarrow.csv.CSVWriter(parts["csv"], schema) as csv,
    ):
        for first in range(0, rows, CHUNK):
            chunk = orders(np.arange(first, min(first + CHUNK, rows)), first, rows)
            parquet.write_table(chunk)
            csv.write_table(chunk)
    for kind, part in parts.items():
        part.rename(files[kind])
    return files


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    else:
        main()
