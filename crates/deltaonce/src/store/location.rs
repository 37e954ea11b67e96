//! Where a table or a file is: a local path or an object in an S3 bucket, and how to get there.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use crate::error::{Error, Result};
use crate::store::local::DurableLocal;
use settings::Settings;

mod settings;
#[cfg(test)]
mod tests;

/// The place of a table or a file: a local path, a `file://` URL or an `s3://bucket/key` URL (`s3a://` is the same).
///
/// ```
/// # fn main() -> deltaonce::Result<()> {
/// use deltaonce::Location;
/// let options = [("endpoint_url".to_owned(), "http://127.0.0.1:8333".to_owned())];
/// let table = Location::parse("s3://lake/silver/orders", options)?;
/// assert_eq!(table.url().as_str(), "s3://lake/silver/orders");
/// assert_eq!(table.to_string(), "s3://lake/silver/orders");
/// # Ok(()) }
/// ```
///
/// It is shown as it was written, and neither `Display` nor `Debug` shows a credential. Clones and what is
/// [joined](Self::join) to it share one connection.
#[derive(Clone)]
pub struct Location {
    text: String,
    url: Url,
    path: Path,
    backend: Arc<Backend>,
}

struct Backend {
    place: Place,
    settings: Settings,
    store: OnceLock<Arc<dyn ObjectStore>>,
    sending_once: OnceLock<Arc<dyn ObjectStore>>,
}

/// How often a client sends a failed request again by itself.
const RETRIES: usize = 5;

enum Place {
    Local(DurableLocal),
    Bucket(String),
}

impl Location {
    /// Reads a location.
    ///
    /// A path is taken as it is, relative ones from the working directory. The text after `s3://bucket/` is the key as
    /// it is too: nothing in it is decoded. In a `file://` URL, `%20` and the like are decoded.
    ///
    /// Options are named as `object_store` names them, in any case, with `aws_` or `AWS_` before them or not:
    /// `endpoint_url`, `region`, `access_key_id`, `secret_access_key`, `session_token`, `allow_http`,
    /// `virtual_hosted_style_request`, `skip_signature`, `timeout` and so on; an empty value unsets one. Plain HTTP is
    /// allowed where the endpoint says `http://`, and with an endpoint the region is `us-east-1` if none is given.
    /// With `ec2_metadata_disabled=true` the machine (EC2) is not asked for credentials. Local paths take the
    /// options too, so that one set serves a load's table and its files, and do not use them.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for an unknown scheme, a malformed location, and an option
    /// that is unknown, given twice or unusable.
    pub fn parse(text: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        Self::parse_with_defaults(text, [], options)
    }

    /// Reads a location, with defaults for the options: the environment, say.
    ///
    /// Names in `defaults` that mean nothing here are ignored, as are empty values. An option beats the defaults that it
    /// makes moot, also under their other names: an access key goes without the defaults' session token, an endpoint
    /// without their S3 endpoint.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with_defaults(
        text: &str,
        defaults: impl IntoIterator<Item = (String, String)>,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let (place, url, path) = split(text)?;
        let settings = Settings::new(defaults, options)?;
        if let Place::Bucket(bucket) = &place {
            settings.check_for_bucket(bucket)?;
        }
        let backend = Backend { place, settings, store: OnceLock::new(), sending_once: OnceLock::new() };
        Ok(Self { text: text.to_owned(), url, path, backend: Arc::new(backend) })
    }

    /// The location as a URL: `file:///…` or `s3://bucket/key`, percent-encoded, without a final `/`.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The location of `relative`, one or more segments with `/` between them, below this one. Nothing in it is decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a segment that is empty, `.` or `..`, or that holds a
    /// control character.
    pub fn join(&self, relative: &str) -> Result<Self> {
        let segments: Vec<&str> = relative.split('/').collect();
        check_segments(relative, &segments)?;
        let mut url = self.url.clone();
        append(&mut url, relative, &segments)?;
        let base = self.path.as_ref();
        let path = if base.is_empty() { relative.to_owned() } else { format!("{base}/{relative}") };
        let path = Path::parse(path).map_err(|error| malformed(relative, "is not a path").caused_by(error))?;
        let text = format!("{}/{relative}", self.text.trim_end_matches('/'));
        Ok(Self { text, url, path, backend: Arc::clone(&self.backend) })
    }

    /// The store of the whole bucket, or of the whole local file system; made once, asks the network nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for option values that S3 cannot be reached with, or where
    /// there are no credentials and none may be looked for.
    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        self.open(&self.backend.store, RETRIES)
    }

    /// The same, by a client that sends each request once: its answers are the store's own, where another client's
    /// "exists" may be the answer to its own repeated put.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) fn store_sending_once(&self) -> Result<Arc<dyn ObjectStore>> {
        self.open(&self.backend.sending_once, 0)
    }

    fn open(&self, opened: &OnceLock<Arc<dyn ObjectStore>>, retries: usize) -> Result<Arc<dyn ObjectStore>> {
        if let Some(store) = opened.get() {
            return Ok(Arc::clone(store));
        }
        let store: Arc<dyn ObjectStore> = match &self.backend.place {
            Place::Local(disk) => Arc::new(disk.clone()),
            Place::Bucket(bucket) => Arc::new(self.backend.settings.open(&self.text, bucket, retries)?),
        };
        Ok(Arc::clone(opened.get_or_init(|| store)))
    }

    /// Returns once what was found at `name` below this location is on stable storage; a bucket keeps all that it shows.
    pub(crate) async fn settle(&self, name: &str) -> object_store::Result<()> {
        match &self.backend.place {
            Place::Local(disk) => disk.settle(&Path::from(format!("{}/{name}", self.path))).await,
            Place::Bucket(_) => Ok(()),
        }
    }

    /// Whether it is on local disk.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.backend.place, Place::Local(_))
    }

    /// This location inside [`Self::store`].
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute path of a local location.
    #[cfg(test)]
    pub(crate) fn local_path(&self) -> Option<PathBuf> {
        match self.backend.place {
            Place::Local(_) => self.url.to_file_path().ok(),
            Place::Bucket(_) => None,
        }
    }

    /// The same location, with `wrap` around its store: a store that fails on purpose, say.
    ///
    /// # Errors
    /// Where the store cannot be opened: [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    #[cfg(any(test, feature = "fault"))]
    pub fn wrapped(&self, wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Result<Self> {
        let place = match &self.backend.place {
            Place::Local(disk) => Place::Local(disk.clone()),
            Place::Bucket(bucket) => Place::Bucket(bucket.clone()),
        };
        let store = wrap(self.store_sending_once()?);
        let backend = Arc::new(Backend {
            place,
            settings: self.backend.settings.clone(),
            store: OnceLock::from(Arc::clone(&store)),
            sending_once: OnceLock::from(store),
        });
        Ok(Self { backend, ..self.clone() })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Location")
            .field("text", &self.text)
            .field("url", &self.url.as_str())
            .field("options", &self.backend.settings)
            .finish()
    }
}

fn split(text: &str) -> Result<(Place, Url, Path)> {
    if text.is_empty() {
        return Err(Error::invalid("a location is empty").hint("name a path, a file:// URL or an s3:// URL"));
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        // Shown escaped, so that the message stays one line.
        return Err(Error::invalid(format!("location {text:?} holds a control character")));
    }
    match scheme(text) {
        None => local(text, absolute(text)?),
        Some((name, rest)) if name.eq_ignore_ascii_case("s3") || name.eq_ignore_ascii_case("s3a") => {
            match rest.strip_prefix("//") {
                Some(rest) => bucket(text, rest),
                None => Err(malformed(text, "is not s3://BUCKET/KEY")),
            }
        }
        Some((name, _)) if name.eq_ignore_ascii_case("file") => local(text, file_url(text)?),
        Some((name, _)) => Err(Error::invalid(format!("scheme '{name}' of a location is not supported"))
            .hint("use a path, file:// or s3://")),
    }
}

/// The scheme of a URL and what follows its colon; none for a path.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(':')?;
    let known = ["file", "s3", "s3a"].iter().any(|known| name.eq_ignore_ascii_case(known));
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // A colon alone may be part of a file's name.
    (named && (rest.starts_with("//") || (known && rest.starts_with('/')))).then_some((name, rest))
}

fn absolute(text: &str) -> Result<PathBuf> {
    use std::path::Component;
    let path = std::path::absolute(text).map_err(|error| malformed(text, "is not a path").caused_by(error))?;
    let components: Vec<Component<'_>> = path.components().collect();
    let Some(last) = components.iter().rposition(|part| matches!(part, Component::ParentDir)) else {
        return Ok(path);
    };
    // What is above a directory is known only by asking, since it may be a link.
    let (before, after) = components.split_at(last + 1);
    let before: PathBuf = before.iter().collect();
    let resolved = before.canonicalize().map_err(|error| {
        let reason = format!("cannot be followed: {}: {error}", before.display());
        malformed(text, &reason).caused_by(error)
    })?;
    Ok(resolved.join(after.iter().collect::<PathBuf>()))
}

fn file_url(text: &str) -> Result<PathBuf> {
    let reason = "is not a file:///PATH";
    if text.ends_with(' ') {
        return Err(malformed(text, "ends in a space").hint("write it as %20, or use a path"));
    }
    let url = Url::parse(text).map_err(|error| malformed(text, reason).caused_by(error))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(malformed(text, "has a query or a fragment").hint("write ? as %3F and # as %23, or use a path"));
    }
    if url.host_str().is_some() {
        return Err(malformed(text, "names a host").hint("a local file is file:///PATH, with three slashes"));
    }
    url.to_file_path().map_err(|()| malformed(text, reason))
}

fn local(text: &str, path: PathBuf) -> Result<(Place, Url, Path)> {
    let reason = "is not a path that can be used";
    let inside = Path::from_absolute_path(&path).map_err(|error| malformed(text, reason).caused_by(error))?;
    let url = Url::from_file_path(&path).map_err(|()| malformed(text, reason))?;
    Ok((Place::Local(DurableLocal::new()), url, inside))
}

/// Reads `BUCKET/KEY`.
fn bucket(text: &str, rest: &str) -> Result<(Place, Url, Path)> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.contains('@') {
        // What stands before it is a secret, so the text is not shown.
        return Err(Error::invalid("an s3:// location holds credentials")
            .hint("give access_key_id and secret_access_key as storage options or in the environment"));
    }
    if bucket.is_empty() {
        return Err(malformed(text, "names no bucket").hint("write s3://BUCKET/KEY"));
    }
    if bucket.contains(':') {
        return Err(malformed(text, "holds a port").hint("give the server as the storage option endpoint_url"));
    }
    if !bucket.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        return Err(malformed(text, &format!("has '{bucket}' where a bucket's name should be")));
    }
    let reason = "is not s3://BUCKET/KEY";
    let mut url = Url::parse(&format!("s3://{bucket}")).map_err(|error| malformed(text, reason).caused_by(error))?;
    let key = key.strip_suffix('/').unwrap_or(key);
    if !key.is_empty() {
        let segments: Vec<&str> = key.split('/').collect();
        check_segments(text, &segments)?;
        append(&mut url, text, &segments)?;
    }
    let path = Path::parse(key).map_err(|error| malformed(text, reason).caused_by(error))?;
    Ok((Place::Bucket(bucket.to_owned()), url, path))
}

fn check_segments(text: &str, segments: &[&str]) -> Result<()> {
    for segment in segments {
        let wrong = match *segment {
            "" => "has an empty segment",
            "." | ".." => "has a segment that is . or ..",
            _ if segment.chars().any(|c| c.is_ascii_control()) => "holds a control character",
            _ => continue,
        };
        return Err(malformed(text, wrong));
    }
    Ok(())
}

fn append(url: &mut Url, text: &str, segments: &[&str]) -> Result<()> {
    let mut path = url.path_segments_mut().map_err(|()| malformed(text, "cannot be continued"))?;
    path.pop_if_empty().extend(segments);
    Ok(())
}

fn malformed(text: &str, reason: &str) -> Error {
    Error::invalid(format!("location '{}' {reason}", text.escape_debug()))
}
