"""Rows as text, one spelling for every reader: values as Spark casts them to string, nested ones as its to_json."""

import datetime
import decimal
import json
import math

import numpy as np
import pyarrow as pa


def canonical_rows(table):
    """The rows of an Arrow table as JSON objects of column to text or null, sorted as text."""
    columns = [[_text(value, field.type) for value in _values(column, field.type)] for field, column in zip(table.schema, table.columns)]
    rows = [dict(zip(table.schema.names, values)) for values in zip(*columns)]
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False, sort_keys=True))


def _values(column, kind):
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pa.timestamp("us", tz=kind.tz))
    return column.to_pylist()


def _text(value, kind):
    if value is None:
        return None
    if isinstance(value, (dict, list)):
        return json.dumps(_json(value, kind), ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value, kind)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return _timestamp(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def _float(value, kind):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if pa.types.is_float32(kind) else repr(value)


def _timestamp(value):
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc)
    fraction = f".{value.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{value.year:04d}-{value:%m-%d %H:%M:%S}{fraction}"


def _json(value, kind):
    """Nested values: null fields of a struct are left out, null items of a list are kept."""
    if pa.types.is_struct(kind):
        return {field.name: _json(value[field.name], field.type) for field in kind if value[field.name] is not None}
    if pa.types.is_map(kind):
        return {_text(key, kind.key_type): _json(item, kind.item_type) for key, item in value}
    if isinstance(value, list):
        return [_json(item, kind.value_type) for item in value]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _text(value, kind)
