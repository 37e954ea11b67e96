#!/usr/bin/env python3
"""One load as the users of Python deltalake write it; prints the seconds it took, imports not counted, as JSON.

  bench_peer.py merge|insert TABLE FILE
  bench_peer.py replace TABLE FILE PREDICATE
  bench_peer.py imports                       only imports what the loads need
"""

import json
import sys
import time

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake


def merge(table, file):
    _matched(table, file).when_matched_update_all(
        predicate="source.source_updated_at > target.source_updated_at"
    ).when_not_matched_insert_all().execute()


def insert(table, file):
    _matched(table, file).when_not_matched_insert_all().execute()


def replace(table, file, predicate):
    write_deltalake(table, pq.read_table(file), mode="overwrite", predicate=predicate)


def imports():
    pass


def _matched(table, file):
    return DeltaTable(table).merge(
        pq.read_table(file),
        predicate="target.order_id = source.order_id",
        source_alias="source",
        target_alias="target",
    )


if __name__ == "__main__":
    load = {f.__name__: f for f in (merge, insert, replace, imports)}[sys.argv[1]]
    start = time.perf_counter()
    load(*sys.argv[2:])
    print(json.dumps({"wall_s": time.perf_counter() - start}))
