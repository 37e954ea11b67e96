"""What the benchmarks share: their inputs' rows, their place on disk, and what a run of a program took."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

PEER = pathlib.Path(__file__).with_name("bench_peer.py")


def cache():
    return pathlib.Path(os.environ.get("DELTAONCE_CACHE", pathlib.Path.home() / ".cache" / "deltaonce"))


def program(parser, path):
    if not path.is_file():
        parser.error(f"{path} is not there: cargo build --release --workspace --bins")
    return path.resolve()


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def several(*choices):
    """Reads a list with commas, of which each part is one of `choices`."""

    def read(text):
        parts = text.split(",")
        if not set(parts) <= set(choices):
            raise ValueError
        return [choice for choice in choices if choice in parts]

    read.__name__ = f"list of {', '.join(choices)}"
    return read


def apart(function, *arguments):
    """The result of a function that runs in a process of its own.

    The peak memory of a process counts from that of the one that starts it, so the one that measures has to stay small.
    """
    import concurrent.futures
    import multiprocessing

    alone = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=alone) as process:
        return process.submit(function, *arguments).result()


def measure(command):
    """Runs a program to its end: its output, its seconds, its peak in MiB, the bytes of its read and write calls."""
    command = [str(part) for part in command]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.perf_counter() - start
    counts = _bytes_through_calls(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {output}")
    return {"output": output, "wall": wall, "rss": usage.ru_maxrss / 1024, **counts}


def _bytes_through_calls(process):
    """Of all threads of a process that has ended and is not reaped yet."""
    lines = pathlib.Path(f"/proc/{process}/io").read_text().splitlines()
    counts = dict(line.split(": ") for line in lines)
    return {"read": int(counts["rchar"]), "written": int(counts["wchar"])}


def read_once(file):
    """So that each run finds the file in the page cache."""
    with open(file, "rb") as source:
        while source.read(1 << 24):
            pass


def orders(ids, seed, total, newer=False):
    """Orders with these ids, spread over the days of 2026; the same arguments make the same rows.

    Id `total` is the first of 2027. Newer ones are later versions of the same orders, later than any that is not.
    """
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(seed)
    count = len(ids)
    new_year = (datetime.date(2026, 1, 1) - datetime.date(1970, 1, 1)).days
    days = new_year + ids * 365 // total
    micros = (days + 400 * newer) * 86_400_000_000 + chance.integers(0, 86_400_000_000, count)
    statuses = np.array(["new", "paid", "shipped", "returned"])
    return pa.table(
        {
            "order_id": ids,
            "customer_id": chance.integers(0, 1_000_000, count),
            "status": pa.array(statuses[chance.integers(0, 4, count)]),
            "amount": np.round(chance.random(count) * 500, 2),
            "qty": chance.integers(1, 20, count).astype(np.int32),
            "note": pa.array([f"note-{a}-{b}" for a, b in zip(ids % 100_003, chance.integers(0, 10**9, count))]),
            "order_date": pa.array(days.astype(np.int32), pa.date32()),
            "source_updated_at": pa.array(micros, pa.timestamp("us", tz="UTC")),
            "source_lsn": ids * 10 + 5 * newer,
        }
    )


def log_of(table):
    return sorted((table / "_delta_log").glob("[0-9]*.json"))


def print_table(heads, rows):
    """In aligned columns: words to the left, figures to the right."""
    cells = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    lefts = [all(not line[column].lstrip("-")[:1].isdigit() for line in cells) for column in range(len(heads))]
    for line in cells:
        padded = (cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(line, widths, lefts))
        print("  ".join(padded).rstrip())


def save(file, document):
    if file:
        file.write_text(json.dumps(document, indent=1) + "\n")
