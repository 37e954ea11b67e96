"""The tables of orders that the benchmarks change, and the files of changes to them."""

import contextlib
import datetime
import json
import os
import shutil

from bench_common import orders

DAY = "2026-06-15"
LEAST_ROWS = 100_000
STREAM, ONCE = "bench-stream", "bench-once"


def change_ids(rows):
    """The ids of the orders in each file of changes to a table of so many rows."""
    import numpy as np

    return {
        "spread-1k": np.arange(1_000) * (rows // 1_000),
        "spread-100k": np.arange(100_000) * (rows // 100_000),
        "newest-10k": np.arange(rows - 10_000, rows),
        "new-10k": np.arange(rows, rows + 10_000),
    }


@contextlib.contextmanager
def _whole(folder, what):
    """A folder to make it in: it gets its name once it is whole, so that what has the name need not be made again."""
    print(f"making {what} in {folder}", flush=True)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    part.rename(folder)


def make_orders(folder, rows, files, shuffled=False):
    """Makes folder/table, in so many files written one after the other, and a Parquet file for each change to it.

    What is there already is kept: the same arguments make the same rows.
    """
    if folder.exists():
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _whole(folder, f"{rows:,} orders in {files:,} files") as part:
        day = pa.concat_tables(_write_orders(part / "table", rows, files, shuffled))
        pq.write_table(day, part / "day.parquet")
        changes = {**change_ids(rows), "day-newer": day["order_id"].to_numpy()}
        for name, ids in changes.items():
            pq.write_table(orders(ids, rows + len(ids), rows, newer=True), part / f"{name}.parquet")


def _write_orders(table, rows, files, shuffled):
    """The orders of the day, piece by piece."""
    import numpy as np
    import pyarrow.compute as pc
    from deltalake import DeltaTable, write_deltalake

    ids = np.arange(rows)
    if shuffled:
        np.random.default_rng(rows).shuffle(ids)
    target, day = str(table), []
    for number, of_file in enumerate(np.array_split(ids, files)):
        chunk = orders(of_file, number, rows)
        write_deltalake(target, chunk, mode="append")
        target = DeltaTable(table) if isinstance(target, str) else target
        day.append(chunk.filter(pc.equal(chunk["order_date"], datetime.date.fromisoformat(DAY))))
    written = len(DeltaTable(table).file_uris())
    if written != files:
        raise ValueError(f"the orders were written to {written} files and not to {files}")
    return day


def copy_table(table, copy):
    """The log is copied; the data files, which nobody changes in place, are linked."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy, copy_function=_copy_or_link)


def _copy_or_link(file, copy):
    if "_delta_log" in str(file):
        shutil.copyfile(file, copy)
    else:
        os.link(file, copy)


def make_long_log(folder, commits, checkpoints):
    """Makes folder/table of so many commits, with checkpoints at these versions, and folder/orders.parquet.

    Each commit adds a file with the rows of that one and records its version of STREAM; the one in the middle records
    ONCE, too. What is there already is kept.
    """
    if folder.exists():
        return
    import numpy as np
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, write_deltalake

    with _whole(folder, f"a log of {commits:,} commits") as part:
        table, rows = part / "table", orders(np.arange(1_000), 0, 1_000)
        pq.write_table(rows, part / "orders.parquet")
        write_deltalake(table, rows, mode="append")
        first = _actions(table)
        for version in range(1, commits):
            _append_by_hand(table, first, version, once=version == commits // 2)
            if version in checkpoints:
                DeltaTable(table).create_checkpoint()


def _actions(table):
    (entry,) = (table / "_delta_log").glob("*.json")
    return {kind: body for line in entry.open() for kind, body in json.loads(line).items()}


def _append_by_hand(table, first, version, once):
    file = f"part-{version:05}.parquet"
    os.link(table / first["add"]["path"], table / file)
    now = first["commitInfo"]["timestamp"] + version
    apps = {STREAM: version, **({ONCE: 0} if once else {})}
    actions = [
        {"commitInfo": {**first["commitInfo"], "timestamp": now}},
        *({"txn": {"appId": app, "version": of_app, "lastUpdated": now}} for app, of_app in apps.items()),
        {"add": {**first["add"], "path": file, "modificationTime": now}},
    ]
    entry = table / "_delta_log" / f"{version:020}.json"
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
