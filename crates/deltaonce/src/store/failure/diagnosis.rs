//! What is wrong with a storage, in words for the one who has to mend it.

use std::io;

use object_store::Error as Store;
use object_store::client::{HttpError, HttpErrorKind};

use super::{causes, io_kind, root};
use crate::error::ErrorKind;
use crate::store::nesting::TooDeep;

/// Why a call failed that is known to have changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    /// What the caller of the load can do. Credentials, rights and a store that lacks the operation do not mend
    /// themselves; all else may pass.
    pub(crate) kind: ErrorKind,
    /// Part of a sentence, and one line.
    pub(crate) reason: String,
    /// What to do about it, where that can be said.
    pub(crate) advice: Option<String>,
    /// The store's own words, where it has any.
    pub(crate) said: Option<String>,
}

impl Diagnosis {
    fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), advice: None, said: None }
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// That the bucket is missing.
    pub(crate) fn no_such_bucket() -> Self {
        Self::new(ErrorKind::Invalid, "there is no such bucket")
            .advice("make the bucket or name another; endpoint_url and aws_region say where it is looked for")
    }

    /// Looks at an error of an object store: first at what the server answered, then at what the system said, then at
    /// what the client makes of it.
    pub(super) fn of(error: &Store) -> Self {
        if let Some(answer) = Answer::of(error) {
            return answer.diagnosis(error);
        }
        if root(error).to_string().contains("redirect without LOCATION") {
            return other_region(None);
        }
        of_system(error).or_else(|| of_connection(error)).unwrap_or_else(|| Self::of_client(error))
    }

    fn of_client(error: &Store) -> Self {
        Self::of_client_saying(error, one_line(&root(error).to_string()))
    }

    /// The same, with `reason` where the kind of the error gives none.
    fn of_client_saying(error: &Store, reason: String) -> Self {
        let kind = match error {
            Store::PermissionDenied { .. } => {
                return Self::new(ErrorKind::Invalid, "its store denies access with these credentials")
                    .advice("they must be allowed to list, read, write and delete what lies below it");
            }
            Store::Unauthenticated { .. } => {
                return Self::new(ErrorKind::Invalid, "its store does not accept these credentials")
                    .advice("look at access_key_id, secret_access_key and session_token");
            }
            Store::NotSupported { source } if source.is::<TooDeep>() => ErrorKind::Unsupported,
            Store::InvalidPath { .. }
            | Store::NotSupported { .. }
            | Store::NotImplemented { .. }
            | Store::UnknownConfigurationKey { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Retryable,
        };
        Self::new(kind, reason)
    }
}

/// What S3 answers where it does not do what it was asked.
#[derive(Debug)]
struct Answer {
    code: String,
    message: String,
}

impl Answer {
    /// The client has the answer as text only, at the end of its own words.
    fn of(error: &Store) -> Option<Self> {
        causes(error).find_map(|error| {
            let text = error.to_string();
            let code = element(&text, "Code")?;
            Some(Self { code, message: element(&text, "Message").unwrap_or_default() })
        })
    }

    fn diagnosis(&self, error: &Store) -> Diagnosis {
        let said = format!("{}: {}", self.code, self.message).trim_end_matches([':', ' ']).to_owned();
        match self.known() {
            Some(diagnosis) => Diagnosis { said: Some(said), ..diagnosis },
            None => Diagnosis::of_client_saying(error, format!("its store answers {said}")),
        }
    }

    /// Of the codes those that say what to mend.
    fn known(&self) -> Option<Diagnosis> {
        let wrong = |reason: &str, advice: &str| Some(Diagnosis::new(ErrorKind::Invalid, reason).advice(advice));
        match self.code.as_str() {
            "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => {
                wrong("its store says that these credentials have expired", "get new ones, then run it again")
            }
            "InvalidAccessKeyId" | "InvalidToken" | "InvalidClientTokenId" => wrong(
                "its store does not know these credentials",
                "look at access_key_id and session_token, and whether they belong to this endpoint",
            ),
            "SignatureDoesNotMatch" => {
                wrong("its store does not accept the secret key", "look at secret_access_key and access_key_id")
            }
            "RequestTimeTooSkewed" => wrong("the clock of this machine is too far from its store's", "set the clock"),
            "NoSuchBucket" => Some(Diagnosis::no_such_bucket()),
            "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException"
                if self.message.contains("region") || self.message.contains("location") =>
            {
                Some(other_region(quoted_after(&self.message, "expecting ")))
            }
            "PermanentRedirect" => Some(other_region(None)),
            _ => None,
        }
    }
}

fn other_region(right: Option<&str>) -> Diagnosis {
    let region = right.unwrap_or("REGION");
    Diagnosis::new(ErrorKind::Invalid, "its bucket lies in another region than aws_region says")
        .advice(format!("say --storage-option aws_region={region}, or set AWS_REGION"))
}

/// What the operating system said of a disk.
fn of_system(error: &Store) -> Option<Diagnosis> {
    let (kind, reason, advice) = match io_kind(error)? {
        io::ErrorKind::StorageFull => (ErrorKind::Retryable, "its disk is full", "make room, then run it again"),
        io::ErrorKind::QuotaExceeded => {
            (ErrorKind::Retryable, "the quota of its disk is used up", "make room, then run it again")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            (ErrorKind::Invalid, "its file system is read-only", "mount it for writing, or name another place")
        }
        io::ErrorKind::PermissionDenied => (
            ErrorKind::Invalid,
            "the user that runs this has no right to do so",
            "give that user the right to read and write its folder",
        ),
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::Unsupported => {
            return Some(Diagnosis::new(ErrorKind::Invalid, one_line(&root(error).to_string())));
        }
        _ => return None,
    };
    Some(Diagnosis::new(kind, reason).advice(advice))
}

/// What became of a connection that brought no answer.
fn of_connection(error: &Store) -> Option<Diagnosis> {
    let http = causes(error).find_map(|error| error.downcast_ref::<HttpError>())?;
    match http.kind() {
        HttpErrorKind::Connect => {
            let why = one_line(&root(error).to_string());
            let reason = format!("its store cannot be reached: {why}");
            Some(
                Diagnosis::new(ErrorKind::Retryable, reason)
                    .advice("look at endpoint_url and the network, then run it again"),
            )
        }
        HttpErrorKind::Timeout => Some(
            Diagnosis::new(ErrorKind::Retryable, "its store did not answer in time")
                .advice("run it again; the storage option timeout says how long to wait for an answer"),
        ),
        _ => None,
    }
}

/// The text of the first XML element of a name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    Some(one_line(&plain.iter().fold(inner.to_owned(), |text, (coded, plain)| text.replace(coded, plain))))
}

/// What stands between single quotes after some words.
fn quoted_after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(words)?;
    rest.strip_prefix('\'')?.split_once('\'').map(|(inner, _)| inner)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::error::Error as StdError;

    use super::*;

    fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Store {
        Store::Generic { store: "test", source: source.into() }
    }

    fn answered(code: &str, message: &str) -> Diagnosis {
        let xml = format!("400 Bad Request: <?xml?>\n<Error>\n<Code>{code}</Code><Message>{message}</Message></Error>");
        Diagnosis::of(&generic(generic(xml)))
    }

    #[test]
    fn the_server_s_own_code_says_what_is_wrong() {
        for code in [
            "ExpiredToken",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "RequestTimeTooSkewed",
            "NoSuchBucket",
            "PermanentRedirect",
        ] {
            let diagnosis = answered(code, "as it says");
            assert_eq!(diagnosis.kind, ErrorKind::Invalid, "{code}");
            assert!(diagnosis.advice.is_some(), "{code}");
            assert_eq!(diagnosis.said.unwrap(), format!("{code}: as it says"));
        }
    }

    #[test]
    fn the_region_that_the_server_expects_is_told() {
        let message = "the region &#39;us-east-1&#39; is wrong; expecting &#39;eu-central-1&#39;";
        let advice = answered("AuthorizationHeaderMalformed", message).advice.unwrap();
        assert!(advice.contains("aws_region=eu-central-1"), "{advice}");
        let redirect = "Received redirect without LOCATION, this normally indicates an incorrectly configured region";
        assert!(Diagnosis::of(&generic(redirect)).reason.contains("region"));
        assert_eq!(answered("AuthorizationHeaderMalformed", "no key").kind, ErrorKind::Retryable);
    }

    #[test]
    fn an_answer_that_may_pass_is_retryable_and_one_line() {
        let diagnosis = answered("SlowDown", "Please\n reduce your rate");
        assert_eq!(diagnosis.kind, ErrorKind::Retryable);
        assert_eq!(diagnosis.reason, "its store answers SlowDown: Please reduce your rate");
    }

    #[test]
    fn a_disk_says_what_it_lacks() {
        for (io, kind, reason) in [
            (io::ErrorKind::StorageFull, ErrorKind::Retryable, "its disk is full"),
            (io::ErrorKind::ReadOnlyFilesystem, ErrorKind::Invalid, "its file system is read-only"),
            (io::ErrorKind::PermissionDenied, ErrorKind::Invalid, "the user that runs this has no right to do so"),
        ] {
            let diagnosis = Diagnosis::of(&generic(io::Error::from(io)));
            assert_eq!((diagnosis.kind, diagnosis.reason.as_str()), (kind, reason));
        }
    }

    #[test]
    fn a_store_that_is_out_of_reach_is_told_from_one_that_is_slow() {
        let refused = HttpError::new(HttpErrorKind::Connect, io::Error::from(io::ErrorKind::ConnectionRefused));
        assert!(Diagnosis::of(&generic(refused)).reason.starts_with("its store cannot be reached: "));
        let slow = HttpError::new(HttpErrorKind::Timeout, io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(Diagnosis::of(&generic(slow)).reason, "its store did not answer in time");
    }
}
