//! S3 servers: one that keeps S3's promises, and one that ignores `If-None-Match`.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::TryStreamExt;
use object_store::ObjectStore as _;
use object_store::ObjectStoreExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};

use crate::ledger::Ledger;
use crate::peers;
use crate::process::{Server, free_ports};

const BUCKET: &str = "test";
const ACCESS_KEY: &str = "test";
const SECRET_KEY: &str = "testtest";

/// A running S3 server with one bucket.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    _server: Server,
}

/// SeaweedFS, whose conditional puts are atomic. One server serves all tests of the process.
pub fn seaweedfs() -> &'static S3 {
    static SERVER: OnceLock<S3> = OnceLock::new();
    SERVER.get_or_init(|| started(start_seaweedfs))
}

/// `rclone serve s3`, which overwrites whatever `If-None-Match` says. One server serves all tests of the process.
pub fn rclone() -> &'static S3 {
    static SERVER: OnceLock<S3> = OnceLock::new();
    SERVER.get_or_init(|| started(start_rclone))
}

/// Another process may take a port between our look and the server's bind: then with other ports.
fn started(start: impl Fn() -> Result<S3, String>) -> S3 {
    start().or_else(|_| start()).unwrap_or_else(|error| panic!("{error}"))
}

fn start_seaweedfs() -> Result<S3, String> {
    let [s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc, admin, admin_grpc] = free_ports();
    let mut arguments: Vec<String> = [
        "mini",
        "-dir=data",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-admin.ui=false",
        "-webdav=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(format!("-bucket={BUCKET}"));
    for (name, http, grpc) in [
        ("s3", s3, s3_grpc),
        ("master", master, master_grpc),
        ("volume", volume, volume_grpc),
        ("filer", filer, filer_grpc),
        ("admin", admin, admin_grpc),
    ] {
        arguments.push(format!("-{name}.port={http}"));
        arguments.push(format!("-{name}.port.grpc={grpc}"));
    }
    let keys = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)];
    let server = Server::start(&peers::program("weed"), &arguments, &keys, s3, |folder| {
        fs::create_dir(folder.join("data")).expect("a folder for the server's data");
    })?;
    let s3 = S3 { address: ([127, 0, 0, 1], s3).into(), _server: server };
    s3.wait_until_it_stores()?;
    Ok(s3)
}

fn start_rclone() -> Result<S3, String> {
    let [port] = free_ports();
    let arguments = [
        "serve".to_owned(),
        "s3".to_owned(),
        format!("--addr=127.0.0.1:{port}"),
        format!("--auth-key={ACCESS_KEY},{SECRET_KEY}"),
        "--config=/dev/null".to_owned(),
        "data".to_owned(),
    ];
    let server = Server::start(&peers::program("rclone"), &arguments, &[], port, |folder| {
        fs::create_dir_all(folder.join("data").join(BUCKET)).expect("a folder for the bucket");
    })?;
    Ok(S3 { address: ([127, 0, 0, 1], port).into(), _server: server })
}

impl S3 {
    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client sets to reach the server.
    #[must_use]
    pub fn options(&self) -> BTreeMap<String, String> {
        options_at(self.address)
    }

    /// A URL that no other test uses.
    pub fn fresh_url(&self, name: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("s3://{BUCKET}/{}/{name}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// A client of the server.
    #[must_use]
    pub fn client(&self) -> AmazonS3 {
        client_at(self.address)
    }

    /// The keys below a URL, relative to it, sorted.
    #[must_use]
    pub fn keys(&self, url: &str) -> Vec<String> {
        let prefix = key_of(url);
        let client = self.client();
        let listed = block_on(async { client.list(Some(&prefix)).try_collect::<Vec<_>>().await });
        let mut keys: Vec<String> = listed
            .unwrap_or_else(|error| panic!("{url} cannot be listed: {error}"))
            .into_iter()
            .map(|object| object.location.as_ref()[prefix.as_ref().len()..].trim_start_matches('/').to_owned())
            .collect();
        keys.sort();
        keys
    }

    /// The object at a URL.
    #[must_use]
    pub fn get(&self, url: &str) -> Vec<u8> {
        let client = self.client();
        block_on(async {
            let object = client.get(&key_of(url)).await.unwrap_or_else(|error| panic!("{url} cannot be read: {error}"));
            object.bytes().await.unwrap_or_else(|error| panic!("{url} cannot be read: {error}")).to_vec()
        })
    }

    /// Puts a local file at a URL.
    pub fn put(&self, url: &str, file: &Path) {
        let bytes = fs::read(file).unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        self.put_bytes(url, &bytes);
    }

    /// Puts an object at a URL, over what is there.
    pub fn put_bytes(&self, url: &str, bytes: &[u8]) {
        let client = self.client();
        block_on(async { client.put(&key_of(url), bytes.to_vec().into()).await })
            .unwrap_or_else(|error| panic!("{url} cannot be written: {error}"));
    }

    /// Copies every object below a URL to another URL.
    pub fn copy_all(&self, from: &str, to: &str) {
        let client = self.client();
        for key in self.keys(from) {
            let (from, to) = (key_of(&format!("{from}/{key}")), key_of(&format!("{to}/{key}")));
            block_on(async { client.copy(&from, &to).await })
                .unwrap_or_else(|error| panic!("{from} cannot be copied: {error}"));
        }
    }

    /// The table at a URL, as its own log and files tell it.
    #[must_use]
    pub fn ledger(&self, url: &str) -> Ledger {
        block_on(Ledger::read(&self.client(), &key_of(url)))
    }

    /// The port opens before the volume can take data.
    fn wait_until_it_stores(&self) -> Result<(), String> {
        let probe = object_store::path::Path::from("ready");
        let mut last = String::new();
        for _ in 0..100 {
            match block_on(async { self.client().put(&probe, vec![0].into()).await }) {
                Ok(_) => return Ok(()),
                Err(error) => last = error.to_string(),
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Err(format!("the server at {} takes no object: {last}", self.address))
    }
}

/// What a client sets to reach a server, or a proxy before it, at an address.
#[must_use]
pub fn options_at(address: SocketAddr) -> BTreeMap<String, String> {
    [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A client of a server, or of a proxy before it, at an address; it tries each request once.
#[must_use]
pub fn client_at(address: SocketAddr) -> AmazonS3 {
    AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .with_retry(object_store::RetryConfig { max_retries: 0, ..Default::default() })
        .build()
        .expect("the options are whole")
}

/// Runs one piece of asynchronous work to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// The key of a URL in the tests' bucket.
pub(crate) fn key_of(url: &str) -> object_store::path::Path {
    let key =
        url.strip_prefix(&format!("s3://{BUCKET}/")).unwrap_or_else(|| panic!("{url} is not in the tests' bucket"));
    object_store::path::Path::parse(key).unwrap_or_else(|error| panic!("{url} is no key: {error}"))
}
