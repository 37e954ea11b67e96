//! The options of a location: S3's, by the names that `object_store` gives them.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};

use crate::error::{Error, Result};

/// The options in force, with at most one value for each key. `Debug` shows names only.
#[derive(Clone)]
pub(super) struct Settings {
    values: HashMap<Key, String>,
    metadata_disabled: bool,
}

/// An option by whatever name it was given.
#[derive(Clone, Copy, PartialEq)]
enum Name {
    S3(Key),
    /// Known to AWS's own tools, not to `object_store`: do not ask the machine (EC2) for credentials.
    MetadataDisabled,
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        match text.as_str() {
            "aws_ec2_metadata_disabled" | "ec2_metadata_disabled" => Some(Self::MetadataDisabled),
            _ => text.parse().ok().map(Self::S3),
        }
    }
}

impl Settings {
    /// Options over defaults; see [`Location::parse_with_defaults`](super::Location::parse_with_defaults).
    pub(super) fn new(
        defaults: impl IntoIterator<Item = (String, String)>,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut settings = Self { values: HashMap::new(), metadata_disabled: false };
        settings.take_defaults(defaults);
        settings.take_options(options)?;
        settings.infer();
        Ok(settings)
    }

    fn take_defaults(&mut self, defaults: impl IntoIterator<Item = (String, String)>) {
        let mut known: Vec<(String, Name, String)> = defaults
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .filter_map(|(text, value)| Name::parse(&text).map(|name| (text, name, value)))
            .collect();
        // Of two names for one key the longer is AWS's own: AWS_ENDPOINT_URL, AWS_SESSION_TOKEN. It comes last and stays.
        known.sort_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
        for (_, name, value) in known {
            match name {
                Name::MetadataDisabled => self.metadata_disabled = value.eq_ignore_ascii_case("true"),
                // The bucket is the location's, and there is only one safe way to put.
                Name::S3(Key::Bucket | Key::ConditionalPut) => {}
                Name::S3(key) => drop(self.values.insert(key, value)),
            }
        }
    }

    fn take_options(&mut self, options: impl IntoIterator<Item = (String, String)>) -> Result<()> {
        let mut seen: Vec<(String, Name)> = Vec::new();
        let mut given = Vec::new();
        for (text, value) in options {
            let Some(name) = Name::parse(&text) else {
                return Err(Error::invalid(format!("storage option '{text}' is not known"))
                    .hint("for example endpoint_url, region, access_key_id, secret_access_key, session_token, allow_http or timeout"));
            };
            if let Some((first, _)) = seen.iter().find(|(_, other)| *other == name) {
                return Err(Error::invalid(format!("storage option '{text}' is given twice, first as '{first}'")));
            }
            seen.push((text.clone(), name));
            given.push((text, name, value));
        }
        for (_, name) in &seen {
            let moot: &[Key] = match name {
                Name::S3(Key::AccessKeyId) => &[Key::Token],
                Name::S3(Key::Endpoint) => &[Key::S3Endpoint],
                Name::S3(Key::DefaultRegion) => &[Key::Region],
                _ => &[],
            };
            for key in moot {
                self.values.remove(key);
            }
        }
        for (text, name, value) in given {
            self.set(&text, name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, text: &str, name: Name, value: String) -> Result<()> {
        match name {
            Name::MetadataDisabled => {
                self.metadata_disabled = match value.to_ascii_lowercase().as_str() {
                    "true" => true,
                    "false" | "" => false,
                    _ => return Err(Error::invalid(format!("storage option '{text}' is neither true nor false"))),
                };
            }
            Name::S3(key) if value.is_empty() => drop(self.values.remove(&key)),
            Name::S3(Key::ConditionalPut) if value.trim() != "etag" => {
                return Err(Error::invalid(format!("storage option '{text}' is '{value}'; only 'etag' is safe"))
                    .hint("without it two writers could replace each other's log entry"));
            }
            Name::S3(key) => drop(self.values.insert(key, value)),
        }
        Ok(())
    }

    fn infer(&mut self) {
        let Some(endpoint) = self.get(Key::S3Endpoint).or_else(|| self.get(Key::Endpoint)) else { return };
        let plain = endpoint.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"));
        let allow = Key::Client(ClientConfigKey::AllowHttp);
        if plain && self.get(allow).is_none() {
            self.values.insert(allow, "true".to_owned());
        }
        if self.get(Key::Region).is_none() && self.get(Key::DefaultRegion).is_none() {
            self.values.insert(Key::Region, "us-east-1".to_owned());
        }
    }

    /// The value in force for `key`.
    pub(super) fn get(&self, key: Key) -> Option<&str> {
        self.values.get(&key).map(String::as_str)
    }

    /// Refuses an option that names another bucket than the location does.
    pub(super) fn check_for_bucket(&self, bucket: &str) -> Result<()> {
        match self.get(Key::Bucket) {
            Some(other) if other != bucket => {
                Err(Error::invalid(format!("storage option 'bucket' is '{other}', but the location is in '{bucket}'")))
            }
            _ => Ok(()),
        }
    }

    /// Opens a bucket; `text` is the location, for messages. No request is made. The client sends a request again up to
    /// `retries` times.
    pub(super) fn open(&self, text: &str, bucket: &str, retries: usize) -> Result<AmazonS3> {
        if self.metadata_disabled && !self.has_credentials() {
            return Err(Error::invalid(format!("there are no credentials for {text}")).hint(
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the storage option skip_signature=true for a public bucket",
            ));
        }
        for key in [Key::AccessKeyId, Key::SecretAccessKey, Key::Token] {
            if self.get(key).is_some_and(|value| value.chars().any(|c| c.is_whitespace() || c.is_control())) {
                return Err(Error::invalid(format!("storage option '{}' holds white space", key.as_ref()))
                    .hint("a line break at its end, perhaps"));
            }
        }
        let mut builder = AmazonS3Builder::new().with_retry(retry(retries));
        for (key, value) in &self.values {
            builder = builder.with_config(*key, value);
        }
        builder
            .with_bucket_name(bucket)
            .build()
            .map_err(|error| Error::invalid(format!("{text} cannot be opened: {error}")).caused_by(error))
    }

    fn has_credentials(&self) -> bool {
        let unsigned = self
            .get(Key::SkipSignature)
            .is_some_and(|value| ["1", "true", "on", "yes", "y"].iter().any(|yes| value.eq_ignore_ascii_case(yes)));
        let elsewhere: [&[Key]; 5] = [
            &[Key::AccessKeyId],
            &[Key::SecretAccessKey],
            &[Key::WebIdentityTokenFile, Key::RoleArn],
            &[Key::ContainerCredentialsRelativeUri],
            &[Key::ContainerCredentialsFullUri, Key::ContainerAuthorizationTokenFile],
        ];
        unsigned || elsewhere.iter().any(|keys| keys.iter().all(|key| self.get(*key).is_some()))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.values.keys().map(AsRef::as_ref).collect();
        names.sort_unstable();
        f.debug_set().entries(names).finish()
    }
}

/// Short: a commit reads back after every doubt and tries again by itself, until the load's own deadline.
fn retry(max_retries: usize) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries,
        retry_timeout: Duration::from_secs(10),
    }
}
