#!/usr/bin/env python3
"""Reads and writes Delta tables as Spark does, for the tests: a peer process (serving.py).

  spark_peer.py JARS

  {"do": "rows", "table": …}                            the rows as text, values cast to string by Spark, sorted
  {"do": "changes", "table": …, "version": …}           what the change data feed says of one version, rows as text
  {"do": "append", "table": …, "file": …, "app_id": …, "app_version": …}
                                                        the rows of a Parquet file, unless that identity is recorded
  {"do": "sql", "table": …, "statement": …}             a statement in which {t} stands for the table
"""

import json
import pathlib
import sys
import tempfile

from pyspark.sql import SparkSession, functions
from serving import serve


def started(jars, folder):
    # Tables are small: what is compiled for them takes longer than it saves.
    builder = SparkSession.builder.master("local[1]").appName("peer")
    for name, value in {
        "spark.jars": ",".join(str(jar) for jar in pathlib.Path(jars).glob("*.jar")),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": folder,
        "spark.local.dir": folder,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def text(field):
    column = functions.col(f"`{field.name}`")
    kind = field.dataType.typeName()
    if kind in ("struct", "array", "map", "variant"):
        return functions.to_json(column).alias(field.name)
    return (functions.hex(column) if kind == "binary" else column.cast("string")).alias(field.name)


def as_text(frame):
    rows = [row.asDict() for row in frame.select(*map(text, frame.schema.fields)).collect()]
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False, sort_keys=True))


def main():
    with tempfile.TemporaryDirectory(prefix="deltaonce-spark-") as folder:
        spark = started(sys.argv[1], folder)

        def rows(table):
            return as_text(spark.read.format("delta").load(table))

        def changes(table, version):
            feed = spark.read.format("delta").option("readChangeFeed", "true")
            return as_text(feed.option("startingVersion", version).option("endingVersion", version).load(table))

        def append(table, file, app_id, app_version):
            writer = spark.read.parquet(file).write.format("delta").mode("append")
            writer.option("txnAppId", app_id).option("txnVersion", app_version).save(table)

        def sql(table, statement):
            spark.sql(statement.replace("{t}", f"delta.`{table}`")).collect()

        doing = {work.__name__: work for work in (rows, changes, append, sql)}
        serve(lambda request: doing[request.pop("do")](**request))


if __name__ == "__main__":
    main()
