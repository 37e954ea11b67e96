"""One load of a file of changes into a copy of a table, by deltaonce or by Python deltalake, measured."""

import collections
import json
import os
import shutil
import statistics
import subprocess
import sys

from bench_common import PEER, apart, log_of, measure, read_once
from bench_tables import DAY, copy_table

VARIANTS = ("plain", "vectors")
PEER_NAME = "deltalake"
SCOPE = f"order_date = '{DAY}'"
OWN_OPTIONS = {
    "merge": ["--key", "order_id", "--newest-by", "source_updated_at desc, source_lsn desc"],
    "insert": ["--key", "order_id"],
    "replace": ["--where", SCOPE],
}
PEER_OPTIONS = {"replace": [SCOPE]}

Load = collections.namedtuple("Load", "contract changes")


class Bench:
    """The program, the folder of the copies, and what the peer's imports read and write, which is not its load's."""

    def __init__(self, program, variants, work):
        if "vectors" in variants and not _has_set(program):
            sys.exit(f"{program} has no command 'set' to turn deletion vectors on: give --variants plain")
        self.program = program
        self.names = [*variants, PEER_NAME]
        self.copies = work / "copies"
        for _ in range(2):
            self.imports = measure([sys.executable, PEER, "imports"])

    def copy(self, name, folder):
        table = self.copies / name
        copy_table(folder / "table", table)
        if name == "vectors":
            measure([self.program, "set", table, "delta.enableDeletionVectors=true", "--quiet"])
        return table

    def load(self, name, load, folder):
        """Loads the changes into the copy that is there; whether that made a new version is in the answer."""
        table, changes = self.copies / name, folder / f"{load.changes}.parquet"
        entries = len(log_of(table))
        for file in (changes, *table.rglob("*")):
            if file.is_file():
                read_once(file)
        os.sync()
        run = self._peer(load, table, changes) if name == PEER_NAME else self._own(load, table, changes)
        run.pop("output")
        return {**run, "version": latest(table), "new_version": len(log_of(table)) > entries}

    def _own(self, load, table, changes):
        options = OWN_OPTIONS[load.contract]
        return measure([self.program, load.contract, table, changes, *options, "--output", "json", "--quiet"])

    def _peer(self, load, table, changes):
        run = measure([sys.executable, PEER, load.contract, table, changes, *PEER_OPTIONS.get(load.contract, [])])
        beyond_imports = {count: max(0, run[count] - self.imports[count]) for count in ("read", "written")}
        return {**run, **beyond_imports, "wall": json.loads(run["output"])["wall_s"]}

    def compare(self, name, run, other):
        """Ends the benchmark unless the copy `name` after a run holds the rows of the peer's after another."""
        sides = [(self.copies / name, run["version"]), (self.copies / PEER_NAME, other["version"])]
        ours, peers, differing = apart(differing_rows, *sides, self.copies / "duckdb")
        if ours != peers or differing:
            sys.exit(f"deltaonce ({name}) leaves {ours:,} rows, deltalake {peers:,}; {differing:,} rows differ")

    def remove_copies(self):
        shutil.rmtree(self.copies, ignore_errors=True)


def _has_set(program):
    return subprocess.run([program, "set", "--help"], capture_output=True).returncode == 0


def latest(table):
    return int(log_of(table)[-1].stem)


def differing_rows(one, other, scratch):
    """Two tables (a folder and a version each) as DuckDB reads them: the rows of each, and how many differ."""
    from readers import duckdb_connection, duckdb_scan

    a, b = (f"from {duckdb_scan(table, version)}" for table, version in (one, other))
    with duckdb_connection() as connection:
        connection.execute(f"set temp_directory = '{scratch}'")
        counts = [connection.execute(f"select count(*) {side}").fetchone()[0] for side in (a, b)]
        either_way = ((a, b), (b, a))
        extra = (f"select count(*) from (select * {x} except all select * {y})" for x, y in either_way)
        return *counts, sum(connection.execute(query).fetchone()[0] for query in extra)


def counted_rows(table):
    """The rows of a table as DuckDB reads it."""
    from readers import duckdb_connection, duckdb_scan

    with duckdb_connection() as connection:
        return connection.execute(f"select count(*) from {duckdb_scan(table)}").fetchone()[0]


def summary(runs):
    """Of several runs: the median of the seconds and bytes, and the greatest peak."""
    medians = {count: statistics.median(run[count] for run in runs) for count in ("wall", "read", "written")}
    return {**medians, "rss": max(run["rss"] for run in runs), "new_version": any(run["new_version"] for run in runs)}


def said(run):
    """A run in one line."""
    moved = f"read {run['read'] / 1e6:7,.1f} MB  written {run['written'] / 1e6:7,.1f} MB"
    return f"{run['wall']:7.2f} s  {run['rss']:6,.0f} MiB  {moved}"
