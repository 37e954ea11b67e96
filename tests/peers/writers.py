"""Another writer of Delta tables: Python deltalake."""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake


def write(
    table, options=None, file=None, schema=None, rows=(), mode="append", partition_by=None, properties=None, predicate=None, retries=None,
    group_rows=None,
):
    """Writes a Parquet file, or rows (lists of text or null) of a schema (column to Arrow type name)."""
    data = pq.read_table(file) if file else _table(schema, rows)
    write_deltalake(
        table,
        data,
        mode=mode,
        partition_by=partition_by,
        configuration=properties,
        predicate=predicate,
        storage_options=options,
        commit_properties=CommitProperties(max_commit_retries=retries),
        writer_properties=WriterProperties(max_row_group_size=group_rows) if group_rows else None,
    )
    return state(table, options)


def delete(table, predicate=None, options=None):
    DeltaTable(table, storage_options=options).delete(predicate)
    return state(table, options)


def compact(table, options=None, partition=None, retries=None):
    """Puts the small files of the table, or of a partition (column to value), together."""
    filters = [(column, "=", value) for column, value in partition.items()] if partition else None
    commit = CommitProperties(max_commit_retries=retries)
    DeltaTable(table, storage_options=options).optimize.compact(partition_filters=filters, commit_properties=commit)
    return state(table, options)


def vacuum(table, options=None, retries=None):
    commit = CommitProperties(max_commit_retries=retries)
    DeltaTable(table, storage_options=options).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, commit_properties=commit
    )
    return state(table, options)


def checkpoint(table, options=None):
    DeltaTable(table, storage_options=options).create_checkpoint()
    return state(table, options)


def nest_statistics(table, depth, options=None):
    """Makes the statistics in the newest checkpoint, a file on local disk, JSON that is nested so deep."""
    path = sorted(pathlib.Path(table.removeprefix("file://"), "_delta_log").glob("*.checkpoint.parquet"))[-1]
    checkpoint = pq.read_table(path)
    at, add = checkpoint.schema.get_field_index("add"), checkpoint["add"].combine_chunks()
    # Arrow would not take nulls in fields of an absent struct otherwise.
    fields, columns = [field.with_nullable(True) for field in add.type], add.flatten()
    stats = add.type.get_field_index("stats")
    deep = f'{{"numRecords":1,"minValues":{{"id":{"[" * depth}{"]" * depth}}}}}'
    columns[stats] = pa.array([deep if value else None for value in columns[stats].to_pylist()], fields[stats].type)
    add = pa.StructArray.from_arrays(columns, fields=fields, mask=add.is_null())
    pq.write_table(checkpoint.set_column(at, "add", add), path)


def add_constraint(table, name, predicate, options=None):
    DeltaTable(table, storage_options=options).alter.add_constraint({name: predicate})
    return state(table, options)


def changes(table, version, options=None):
    """What the change data feed says of one version, rows as text."""
    feed = DeltaTable(table, storage_options=options).load_cdf(starting_version=version, ending_version=version)
    rows = pa.table(feed.read_all()).to_pylist()
    return [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]


def state(table, options=None):
    """What the table says of itself: version, live data files, schema, partition columns, properties."""
    delta = DeltaTable(table, storage_options=options)
    metadata = delta.metadata()
    return {
        "version": delta.version(),
        "files": sorted(delta.file_uris()),
        "schema": delta.schema().to_json(),
        "partition_columns": metadata.partition_columns,
        "properties": metadata.configuration,
    }


WRITERS = {
    f.__name__: f
    for f in (write, delete, compact, vacuum, checkpoint, nest_statistics, add_constraint, changes, state)
}


def _table(schema, rows):
    columns = zip(*rows) if rows else [[] for _ in schema]
    return pa.table({name: pa.array(list(values), pa.string()).cast(_type(kind)) for (name, kind), values in zip(schema.items(), columns)})


def _type(name):
    if name.startswith("decimal("):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if name == "timestamp":
        return pa.timestamp("us", tz="UTC")
    return pa.type_for_alias(name)
