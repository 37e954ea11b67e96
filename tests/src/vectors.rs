//! Deletion vectors, read by nothing of the product.

use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::Value;

/// Bytes before a vector's bitmap: its size, and the mark of its form.
const FRAME: usize = 8;

/// The object that holds the deletion vector of an `add`, if it has one; these tests write no vector elsewhere.
///
/// # Panics
/// Where it is somewhere else, or nowhere.
#[must_use]
pub fn object(add: &Value) -> Option<String> {
    let vector = add.get("deletionVector").filter(|vector| !vector.is_null())?;
    assert_eq!(vector["storageType"], "u", "{vector}");
    let text = vector["pathOrInlineDv"].as_str().expect("a vector has a place");
    let id = z85::decode(text).expect("it is Z85");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(format!("deletion_vector_{}.bin", parts.join("-")))
}

/// Places of the rows that an `add` masks, given the bytes of the object that holds its vector.
///
/// # Panics
/// Where they are not as the `add` says.
#[must_use]
pub fn masked(add: &Value, get: impl FnOnce(&str) -> Bytes) -> RoaringTreemap {
    let Some(object) = object(add) else { return RoaringTreemap::new() };
    let vector = &add["deletionVector"];
    let number =
        |name: &str| usize::try_from(vector[name].as_u64().unwrap_or_else(|| panic!("{vector} has no {name}")));
    let start = number("offset").expect("it is small") + FRAME;
    let masked = RoaringTreemap::deserialize_from(&get(&object)[start..]).expect("a bitmap");
    assert_eq!(vector["cardinality"], masked.len(), "{vector}");
    masked
}
