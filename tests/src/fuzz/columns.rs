//! Column lists and Delta's schema JSON of `--schema`.

use deltaonce::TableSpec;
use serde_json::{Value, json};

use super::lake::{Lake, Objects, harmless, sensible};
use super::{Case, Random, mutate};

const WORDS: [&str; 36] = [
    "bigint",
    "decimal(38,38)",
    "decimal(39,0)",
    "decimal(1,2)",
    "decimal(0)",
    "varchar(3)",
    "void",
    "interval",
    "variant",
    "array<",
    "map<",
    "struct<",
    "struct<>",
    ">",
    ">>",
    "<",
    ",",
    ":",
    "not null",
    "not",
    "comment",
    "comment 'x'",
    "'",
    "`",
    "``",
    "\"",
    "(",
    ")",
    "\\",
    "é",
    "{",
    "{}",
    "\"type\"",
    "null",
    "\u{0}",
    "a.b",
];

const LEAVES: [(&str, &str); 11] = [
    ("bigint", "long"),
    ("int", "integer"),
    ("smallint", "short"),
    ("tinyint", "byte"),
    ("float", "float"),
    ("double", "double"),
    ("string", "string"),
    ("binary", "binary"),
    ("date", "date"),
    ("timestamp", "timestamp"),
    ("timestamp_ntz", "timestamp_ntz"),
];

/// A type as a column list has it, as `describe` shows it, and as Delta's JSON has it.
struct Type {
    sql: String,
    shown: String,
    json: Value,
}

fn data_type(random: &mut Random, depth: usize) -> Type {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => {
            let precision = random.within(1, 38);
            let scale = random.within(0, precision);
            let text = format!("decimal({precision},{scale})");
            Type { sql: text.clone(), shown: text.clone(), json: text.into() }
        }
        1..=4 => {
            let (sql, json) = *random.pick(&LEAVES);
            Type { sql: sql.into(), shown: sql.into(), json: json.into() }
        }
        5 => {
            let element = data_type(random, depth - 1);
            Type {
                sql: format!("array<{}>", element.sql),
                shown: format!("array<{}>", element.shown),
                json: json!({"type": "array", "elementType": element.json, "containsNull": true}),
            }
        }
        6 => {
            let (key, value) = (data_type(random, 0), data_type(random, depth - 1));
            Type {
                sql: format!("MAP<{}, {}>", key.sql, value.sql),
                shown: format!("map<{},{}>", key.shown, value.shown),
                json: json!({"type": "map", "keyType": key.json, "valueType": value.json, "valueContainsNull": true}),
            }
        }
        _ => {
            let fields = fields(random, depth - 1);
            let sql: Vec<_> =
                fields.iter().map(|field| format!("{}: {}{}", field.name, field.of.sql, field.suffix())).collect();
            let shown: Vec<_> = fields.iter().map(|field| format!("{}: {}", field.name, field.of.shown)).collect();
            Type {
                sql: format!("struct<{}>", sql.join(",")),
                shown: format!("struct<{}>", shown.join(", ")),
                json: json!({"type": "struct", "fields": fields.iter().map(Field::json).collect::<Vec<_>>()}),
            }
        }
    }
}

struct Field {
    name: String,
    of: Type,
    nullable: bool,
}

impl Field {
    fn suffix(&self) -> &'static str {
        if self.nullable { "" } else { " not null" }
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "type": self.of.json, "nullable": self.nullable, "metadata": {}})
    }
}

fn fields(random: &mut Random, depth: usize) -> Vec<Field> {
    let count = 1 + random.length(5);
    let names = ["a", "Bc", "_d", "é", "e9", "not", "comment"];
    names
        .iter()
        .take(count)
        .map(|name| Field { name: (*name).to_owned(), of: data_type(random, depth), nullable: !random.once_in(4) })
        .collect()
}

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let random = &mut case.random;
    let fields = fields(random, 3);
    let is_json = random.once_in(2);
    let mut schema = if is_json {
        json!({"type": "struct", "fields": fields.iter().map(Field::json).collect::<Vec<_>>()}).to_string()
    } else {
        let column = |field: &Field| format!("`{}` {}{}", field.name, field.of.sql, field.suffix());
        fields.iter().map(column).collect::<Vec<_>>().join(", ")
    };
    let is_spoilt = random.once_in(2);
    if is_spoilt {
        for _ in 0..=random.length(4) {
            if is_json && !random.once_in(4) {
                schema = mutate::json(random, &schema);
            } else {
                mutate::text(random, &mut schema, &WORDS);
            }
        }
    }
    case.note(format!("schema of {} bytes: {schema}", schema.len()));
    let lake = Lake::holding(&Objects::new()).await;
    let table = lake.table().await;
    let result = table.create(&TableSpec { schema: Some(schema), ..TableSpec::default() }).await;
    sensible(&result)?;
    harmless(&Objects::new(), &lake.objects().await, result.is_ok())?;
    match result {
        Err(error) if !is_spoilt => return Err(format!("refused: {} {:?}", error.message(), error.evidence())),
        Err(_) => return Ok(()),
        Ok(_) => {}
    }
    let described = table.describe().await.map_err(|error| format!("it was made and cannot be described: {error}"))?;
    if is_spoilt {
        return Ok(());
    }
    let expected: Vec<_> =
        fields.iter().map(|field| format!("{} {}{}", field.name, field.of.shown, field.suffix())).collect();
    if described.schema == expected { Ok(()) } else { Err(format!("it has the columns {:?}", described.schema)) }
}
