//! A table's columns as a user writes them, and Arrow's types in the words that people use for them.

use arrow::datatypes::{DataType as ArrowType, Schema as ArrowSchema, TimeUnit};
use deltalake::kernel::{ArrayType, DataType, MapType, PrimitiveType, StructField, StructType};

use super::sql_columns;
use crate::error::{Error, Result};

/// Types inside each other, at most: what reads, writes and shows a schema recurses into it.
pub(super) const NESTING: usize = 32;
/// Bytes of a declared schema, at most.
const LONGEST: usize = 1 << 20;

/// Reads a declared schema: Delta's schema JSON, or a column list in SQL as Spark writes it
/// (`order_id bigint not null, amount decimal(12,2)`).
///
/// # Errors
/// `Invalid`, naming the column and, for SQL, the character where reading stopped; also for names that differ only in
/// case, names that Delta cannot write without column mapping, and types no data file can hold.
pub(crate) fn parse(text: &str) -> Result<StructType> {
    if text.len() > LONGEST {
        return Err(Error::invalid(format!("the schema is {} bytes long; at most {LONGEST} are taken", text.len())));
    }
    let schema = if text.trim_start().starts_with('{') {
        serde_json::from_str(text)
            .map_err(|e| Error::invalid(format!("the schema is not Delta's schema JSON: {e}")).caused_by(e))?
    } else {
        sql_columns::parse(text)?
    };
    if schema.num_fields() == 0 {
        return Err(Error::invalid("the schema has no columns"));
    }
    check_struct(&schema, "", 0)?;
    Ok(schema)
}

/// The columns of a table made for rows of `source`'s types; `name` says whose they are.
///
/// Unsigned integers take the next wider type, `timestamp` any unit and zone (each value is checked when it is written).
///
/// # Errors
/// `Refused` for a type that no Delta column can hold without loss, names that differ only in case, and names that Delta
/// cannot write without column mapping.
pub(crate) fn of_arrow(source: &ArrowSchema, name: &str) -> Result<StructType> {
    let schema = struct_of(source.fields(), "", name)?;
    check_struct(&schema, "", 0).map_err(|e| Error::refused(format!("{name}: {}", e.message())))?;
    Ok(schema)
}

/// An Arrow type in SQL's words, for messages: `bigint`, `array<string>`; types without a Delta column in Arrow's.
pub(crate) fn sql_type(data_type: &ArrowType) -> String {
    match data_type {
        ArrowType::Null => "void".into(),
        ArrowType::Boolean => "boolean".into(),
        ArrowType::Int8 => "tinyint".into(),
        ArrowType::Int16 => "smallint".into(),
        ArrowType::Int32 => "int".into(),
        ArrowType::Int64 => "bigint".into(),
        ArrowType::UInt8 => "unsigned tinyint".into(),
        ArrowType::UInt16 => "unsigned smallint".into(),
        ArrowType::UInt32 => "unsigned int".into(),
        ArrowType::UInt64 => "unsigned bigint".into(),
        ArrowType::Float16 => "half float".into(),
        ArrowType::Float32 => "float".into(),
        ArrowType::Float64 => "double".into(),
        ArrowType::Decimal32(p, s)
        | ArrowType::Decimal64(p, s)
        | ArrowType::Decimal128(p, s)
        | ArrowType::Decimal256(p, s) => format!("decimal({p},{s})"),
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => "string".into(),
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            "binary".into()
        }
        ArrowType::Date32 | ArrowType::Date64 => "date".into(),
        ArrowType::Timestamp(_, None) => "timestamp_ntz".into(),
        ArrowType::Timestamp(_, Some(_)) => "timestamp".into(),
        ArrowType::Dictionary(_, value) => sql_type(value),
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element)
        | ArrowType::FixedSizeList(element, _) => format!("array<{}>", sql_type(element.data_type())),
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) => {
                let sides: Vec<_> = pair.iter().map(|field| sql_type(field.data_type())).collect();
                format!("map<{}>", sides.join(","))
            }
            other => format!("map<{other}>"),
        },
        ArrowType::Struct(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|field| format!("{}: {}", field.name(), sql_type(field.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        ArrowType::Time32(unit) | ArrowType::Time64(unit) => format!("time of day in {}", unit_name(*unit)),
        ArrowType::Duration(unit) => format!("duration in {}", unit_name(*unit)),
        other => other.to_string(),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

fn check_struct(schema: &StructType, parent: &str, depth: usize) -> Result<()> {
    for field in schema.fields() {
        let path = join(parent, field.name());
        check_name(field.name(), &path)?;
        check_type(field.data_type(), &path, depth)?;
    }
    Ok(())
}

fn check_name(name: &str, path: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("the schema has a column without a name"));
    }
    // Delta's writers refuse these without column mapping, since Parquet's and Hive's readers stumble over them.
    if let Some(odd) = name.chars().find(|c| " ,;{}()\n\t=".contains(*c)) {
        return Err(Error::invalid(format!("column '{path}' has {odd:?} in its name, which Delta tables cannot hold"))
            .hint("name it with letters, digits and underscores"));
    }
    Ok(())
}

fn check_type(data_type: &DataType, path: &str, depth: usize) -> Result<()> {
    if depth > NESTING {
        return Err(Error::invalid(format!("column '{path}' has types more than {NESTING} deep inside each other")));
    }
    let depth = depth + 1;
    let unheld = |what: &str| Err(Error::invalid(format!("column '{path}' is of type {what}, which is not written")));
    match data_type {
        DataType::Primitive(PrimitiveType::Void) => unheld("void"),
        DataType::Primitive(PrimitiveType::IntervalYearMonth | PrimitiveType::IntervalDayTime) => unheld("interval"),
        DataType::Primitive(_) => Ok(()),
        DataType::Variant(_) => unheld("variant"),
        DataType::Struct(fields) if fields.num_fields() == 0 => unheld("struct<> without fields"),
        DataType::Struct(fields) => check_struct(fields, path, depth),
        DataType::Array(array) => check_type(array.element_type(), &join(path, "element"), depth),
        DataType::Map(map) => {
            check_type(map.key_type(), &join(path, "key"), depth)?;
            check_type(map.value_type(), &join(path, "value"), depth)
        }
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn struct_of(fields: &arrow::datatypes::Fields, parent: &str, name: &str) -> Result<StructType> {
    let columns: Vec<StructField> = fields
        .iter()
        .map(|field| {
            let path = join(parent, field.name());
            let data_type = type_of(field.data_type(), &path, name)?;
            Ok(StructField::new(field.name(), data_type, field.is_nullable()))
        })
        .collect::<Result<_>>()?;
    StructType::try_new(columns).map_err(|e| Error::refused(format!("{name}: {e}")).caused_by(e))
}

fn type_of(data_type: &ArrowType, path: &str, name: &str) -> Result<DataType> {
    let unheld = || {
        let sql = sql_type(data_type);
        Error::refused(format!("{name}: column {path} is of type {sql}, which no Delta column holds"))
            .hint("declare the table's columns with a schema, or convert the column in the source")
    };
    let decimal = |precision: u8, scale: i8| {
        u8::try_from(scale).ok().and_then(|scale| DataType::decimal(precision, scale).ok()).ok_or_else(unheld)
    };
    Ok(match data_type {
        ArrowType::Boolean => DataType::BOOLEAN,
        ArrowType::Int8 => DataType::BYTE,
        ArrowType::Int16 | ArrowType::UInt8 => DataType::SHORT,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::INTEGER,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::LONG,
        ArrowType::UInt64 => decimal(20, 0)?,
        ArrowType::Float16 | ArrowType::Float32 => DataType::FLOAT,
        ArrowType::Float64 => DataType::DOUBLE,
        ArrowType::Decimal32(p, s)
        | ArrowType::Decimal64(p, s)
        | ArrowType::Decimal128(p, s)
        | ArrowType::Decimal256(p, s) => decimal(*p, *s)?,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::STRING,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::BINARY
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::DATE,
        ArrowType::Timestamp(_, None) => DataType::TIMESTAMP_NTZ,
        ArrowType::Timestamp(_, Some(_)) => DataType::TIMESTAMP,
        ArrowType::Dictionary(_, value) => type_of(value, path, name)?,
        ArrowType::List(element) | ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _) => {
            let inner = type_of(element.data_type(), &join(path, "element"), name)?;
            ArrayType::new(inner, element.is_nullable()).into()
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) => {
                let [key, value] = pair.as_ref() else { return Err(unheld()) };
                let of_key = type_of(key.data_type(), &join(path, "key"), name)?;
                let of_value = type_of(value.data_type(), &join(path, "value"), name)?;
                MapType::new(of_key, of_value, value.is_nullable()).into()
            }
            _ => return Err(unheld()),
        },
        ArrowType::Struct(fields) => struct_of(fields, path, name)?.into(),
        _ => return Err(unheld()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn reads_delta_json() {
        let json = r#"{"type":"struct","fields":[
            {"name":"id","type":"long","nullable":false,"metadata":{}},
            {"name":"tags","type":{"type":"array","elementType":"string","containsNull":true},"nullable":true,"metadata":{"comment":"free"}}]}"#;
        let schema = parse(json).unwrap();
        assert_eq!(schema.field("id").unwrap(), &StructField::not_null("id", DataType::LONG));
        assert_eq!(serde_json::to_value(&schema).unwrap()["fields"][1]["metadata"]["comment"], "free");
    }

    #[test]
    fn refuses_what_no_data_file_holds() {
        let field = |name: &str, data_type: &str| {
            format!(
                r#"{{"type":"struct","fields":[{{"name":"{name}","type":"{data_type}","nullable":true,"metadata":{{}}}}]}}"#
            )
        };
        assert!(parse(&field("v", "variant")).unwrap_err().message().contains("column 'v' is of type variant"));
        assert!(parse(&field("a b", "long")).unwrap_err().message().contains("column 'a b' has ' ' in its name"));
        assert!(parse(&field("x", "varchar(10)")).unwrap_err().message().contains("varchar(10)"));
        let twice = r#"{"type":"struct","fields":[
            {"name":"id","type":"long","nullable":false,"metadata":{}},
            {"name":"ID","type":"long","nullable":false,"metadata":{}}]}"#;
        assert!(parse(twice).unwrap_err().message().contains("'ID'"));
        assert!(parse(" ").is_err());
    }

    #[test]
    fn makes_columns_for_arrow_types() {
        let entries = Field::new(
            "entries",
            ArrowType::Struct(
                vec![Field::new("k", ArrowType::Utf8View, false), Field::new("v", ArrowType::UInt8, true)].into(),
            ),
            false,
        );
        let source = ArrowSchema::new(vec![
            Field::new("u", ArrowType::UInt64, false),
            Field::new("d", ArrowType::Dictionary(ArrowType::Int8.into(), ArrowType::LargeUtf8.into()), true),
            Field::new("t", ArrowType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())), true),
            Field::new("m", ArrowType::Map(Arc::new(entries), false), true),
        ]);
        let expected = parse("u decimal(20,0) not null, d string, t timestamp, m map<string,smallint>").unwrap();
        assert_eq!(of_arrow(&source, "a.parquet").unwrap(), expected);
        let time = ArrowSchema::new(vec![Field::new("at", ArrowType::Time64(TimeUnit::Microsecond), true)]);
        let error = of_arrow(&time, "a.parquet").unwrap_err();
        assert_eq!(
            error.message(),
            "a.parquet: column at is of type time of day in microseconds, which no Delta column holds"
        );
    }

    #[test]
    fn names_types_in_sql() {
        let nested = ArrowType::Struct(
            vec![
                Field::new("a", ArrowType::Int32, true),
                Field::new("b", ArrowType::List(Arc::new(Field::new("x", ArrowType::LargeUtf8, true))), true),
            ]
            .into(),
        );
        assert_eq!(sql_type(&nested), "struct<a: int, b: array<string>>");
    }
}
