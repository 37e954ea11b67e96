//! What a table's protocol must list so that a feature may be used in it.

use std::cmp::max;

use super::definition::Protocol;

/// A table feature (protocol, "Valid Feature Names in Table Features").
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    name: &'static str,
    /// The least reader and writer versions that stand for it without listing it; none where it must be listed.
    legacy: Option<(i32, i32)>,
    /// Whether readers must know it.
    reads: bool,
}

pub(crate) const APPEND_ONLY: Feature = Feature { name: "appendOnly", legacy: Some((1, 2)), reads: false };
const INVARIANTS: Feature = Feature { name: "invariants", legacy: Some((1, 2)), reads: false };
pub(crate) const CHECK_CONSTRAINTS: Feature = Feature { name: "checkConstraints", legacy: Some((1, 3)), reads: false };
pub(crate) const CHANGE_DATA_FEED: Feature = Feature { name: "changeDataFeed", legacy: Some((1, 4)), reads: false };
const GENERATED_COLUMNS: Feature = Feature { name: "generatedColumns", legacy: Some((1, 4)), reads: false };
const COLUMN_MAPPING: Feature = Feature { name: "columnMapping", legacy: Some((2, 5)), reads: true };
const IDENTITY_COLUMNS: Feature = Feature { name: "identityColumns", legacy: Some((1, 6)), reads: false };
pub(crate) const DELETION_VECTORS: Feature = Feature { name: "deletionVectors", legacy: None, reads: true };
pub(crate) const TIMESTAMP_NTZ: Feature = Feature { name: "timestampNtz", legacy: None, reads: true };

/// The features that versions stand for.
const LEGACY: [&Feature; 7] = [
    &APPEND_ONLY,
    &INVARIANTS,
    &CHECK_CONSTRAINTS,
    &CHANGE_DATA_FEED,
    &GENERATED_COLUMNS,
    &COLUMN_MAPPING,
    &IDENTITY_COLUMNS,
];

/// The versions from which on features are listed.
const LISTED_BY_READER: i32 = 3;
const LISTED_BY_WRITER: i32 = 7;

impl Protocol {
    /// The protocol of a table that needs no feature.
    pub(crate) fn least() -> Self {
        Self { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None }
    }

    /// The least change of this protocol by which it supports all of `needed`; itself where it does.
    ///
    /// Whatever it supports stays supported: when features come to be listed, those that the versions stood for are listed
    /// too (protocol, "Table Features for new and Existing Tables").
    pub(crate) fn supporting(&self, needed: &[&Feature]) -> Self {
        let missing: Vec<&Feature> = needed.iter().copied().filter(|feature| !self.supports(feature)).collect();
        if missing.is_empty() {
            return self.clone();
        }
        let legacy: Option<Vec<(i32, i32)>> = missing.iter().map(|feature| feature.legacy).collect();
        match legacy {
            Some(versions) if self.writer_features.is_none() => Self {
                min_reader_version: versions
                    .iter()
                    .fold(self.min_reader_version, |least, (reader, _)| max(least, *reader)),
                min_writer_version: versions
                    .iter()
                    .fold(self.min_writer_version, |least, (_, writer)| max(least, *writer)),
                ..self.clone()
            },
            _ => self.listing(&missing),
        }
    }

    fn supports(&self, feature: &Feature) -> bool {
        match &self.writer_features {
            Some(writer) => {
                let reader = self.reader_features.as_ref();
                contains(writer, feature)
                    && (!feature.reads || reader.map_or(self.implies(feature), |reader| contains(reader, feature)))
            }
            None => self.implies(feature),
        }
    }

    /// Whether the versions stand for it, where the reader's and the writer's alone decide.
    fn implies(&self, feature: &Feature) -> bool {
        feature
            .legacy
            .is_some_and(|(reader, writer)| self.min_reader_version >= reader && self.min_writer_version >= writer)
    }

    /// This protocol with its features listed, `missing` among them.
    fn listing(&self, missing: &[&Feature]) -> Self {
        let implied = || LEGACY.into_iter().filter(|feature| self.implies(feature));
        let mut writer = match &self.writer_features {
            Some(listed) => listed.clone(),
            None => names(implied()),
        };
        add(&mut writer, missing.iter().copied());
        let mut reader = match &self.reader_features {
            Some(listed) => Some(listed.clone()),
            None if missing.iter().any(|feature| feature.reads) => {
                Some(names(implied().filter(|feature| feature.reads && contains(&writer, feature))))
            }
            None => None,
        };
        if let Some(reader) = &mut reader {
            add(reader, missing.iter().copied().filter(|feature| feature.reads));
        }
        Self {
            min_reader_version: if reader.is_some() { LISTED_BY_READER } else { self.min_reader_version },
            min_writer_version: LISTED_BY_WRITER,
            reader_features: reader,
            writer_features: Some(writer),
        }
    }
}

fn contains(listed: &[String], feature: &Feature) -> bool {
    listed.iter().any(|name| name == feature.name)
}

fn names<'a>(features: impl Iterator<Item = &'a Feature>) -> Vec<String> {
    features.map(|feature| feature.name.to_owned()).collect()
}

fn add<'a>(listed: &mut Vec<String>, features: impl Iterator<Item = &'a Feature>) {
    for feature in features {
        if !contains(listed, feature) {
            listed.push(feature.name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(reader: i32, writer: i32) -> Protocol {
        Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: None,
            writer_features: None,
        }
    }

    fn listed(reader: Option<&[&str]>, writer: &[&str]) -> Protocol {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Protocol {
            min_reader_version: if reader.is_some() { 3 } else { 1 },
            min_writer_version: 7,
            reader_features: reader.map(texts),
            writer_features: Some(texts(writer)),
        }
    }

    #[test]
    fn versions_rise_while_they_stand_for_what_is_needed() {
        assert_eq!(legacy(1, 2).supporting(&[]), legacy(1, 2));
        assert_eq!(legacy(1, 1).supporting(&[&APPEND_ONLY]), legacy(1, 2));
        assert_eq!(legacy(1, 2).supporting(&[&CHECK_CONSTRAINTS]), legacy(1, 3));
        assert_eq!(legacy(1, 2).supporting(&[&CHECK_CONSTRAINTS, &CHANGE_DATA_FEED]), legacy(1, 4));
        assert_eq!(legacy(2, 5).supporting(&[&CHANGE_DATA_FEED]), legacy(2, 5));
    }

    #[test]
    fn what_the_versions_stood_for_is_listed_with_the_first_listed_feature() {
        let base = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"];
        let with = |more: &[&'static str]| [&base, more].concat();
        let cases: [(Protocol, &[&str], Vec<&str>); 8] = [
            (legacy(1, 1), &[], vec![]),
            (legacy(1, 2), &[], base[..2].to_vec()),
            (legacy(1, 3), &[], base[..3].to_vec()),
            (legacy(1, 4), &[], base.to_vec()),
            // A mapping that readers do not know of is none.
            (legacy(1, 5), &[], base.to_vec()),
            (legacy(1, 6), &[], with(&["identityColumns"])),
            (legacy(2, 5), &["columnMapping"], with(&["columnMapping"])),
            (legacy(2, 6), &["columnMapping"], with(&["columnMapping", "identityColumns"])),
        ];
        for (before, reader, writer) in cases {
            let expected = listed(
                Some(&[reader, &["deletionVectors"]].concat()),
                &[writer.as_slice(), &["deletionVectors"]].concat(),
            );
            assert_eq!(before.supporting(&[&DELETION_VECTORS]), expected, "{before:?}");
        }
    }

    #[test]
    fn a_list_is_kept_and_grows_at_its_end() {
        let before = listed(None, &["inCommitTimestamp", "somethingNew", "appendOnly"]);
        assert_eq!(
            before.supporting(&[&CHANGE_DATA_FEED]),
            listed(None, &["inCommitTimestamp", "somethingNew", "appendOnly", "changeDataFeed"])
        );
        assert_eq!(
            before.supporting(&[&DELETION_VECTORS]),
            listed(Some(&["deletionVectors"]), &["inCommitTimestamp", "somethingNew", "appendOnly", "deletionVectors"])
        );
        let both = listed(Some(&["v2Checkpoint"]), &["v2Checkpoint", "invariants"]);
        assert_eq!(
            both.supporting(&[&DELETION_VECTORS, &APPEND_ONLY]),
            listed(
                Some(&["v2Checkpoint", "deletionVectors"]),
                &["v2Checkpoint", "invariants", "deletionVectors", "appendOnly"]
            )
        );
        let again = both.supporting(&[&DELETION_VECTORS]);
        assert_eq!(again.supporting(&[&DELETION_VECTORS]), again);
    }

    #[test]
    fn a_mapping_that_the_readers_version_stands_for_is_listed_for_readers() {
        let before = Protocol { min_reader_version: 2, ..listed(None, &["columnMapping"]) };
        assert_eq!(
            before.supporting(&[&DELETION_VECTORS]),
            listed(Some(&["columnMapping", "deletionVectors"]), &["columnMapping", "deletionVectors"])
        );
    }
}
