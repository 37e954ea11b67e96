"""Other readers of Delta tables: Python deltalake and DuckDB's delta extension."""

import pathlib

import duckdb
import duckdb_extension_delta
import duckdb_extension_httpfs
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def deltalake_rows(table, options=None, version=None):
    delta = DeltaTable(table, version=version, storage_options=options)
    # The query engine reads deletion vectors and v2 checkpoints, which the pyarrow reader refuses.
    return pa.table(QueryBuilder().register("t", delta).execute("select * from t").read_all())


def duckdb_rows(table, options=None, version=None):
    with duckdb_connection(options) as connection:
        return connection.execute(f"select * from {duckdb_scan(table, version)}").to_arrow_table()


READERS = {"deltalake": deltalake_rows, "duckdb": duckdb_rows}


def duckdb_scan(table, version=None):
    at = "" if version is None else f", version => {int(version)}"
    return f"delta_scan({_quoted(table)}{at})"


def duckdb_connection(options=None):
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for module in (duckdb_extension_httpfs, duckdb_extension_delta):
        name = module.__name__.removeprefix("duckdb_extension_")
        folder = pathlib.Path(module.__file__).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"load {_quoted(folder / f'{name}.duckdb_extension')}")
    if options:
        connection.execute(
            f"""create secret (type s3, url_style 'path', use_ssl false, region {_quoted(options["AWS_REGION"])},
            endpoint {_quoted(options["AWS_ENDPOINT_URL"].removeprefix("http://"))},
            key_id {_quoted(options["AWS_ACCESS_KEY_ID"])}, secret {_quoted(options["AWS_SECRET_ACCESS_KEY"])})"""
        )
    return connection


def _quoted(value):
    return "'" + str(value).replace("'", "''") + "'"
