use super::*;
use crate::ErrorKind;

fn pairs(options: &[(&str, &str)]) -> Vec<(String, String)> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn parse(text: &str) -> Result<Location> {
    Location::parse(text, [])
}

fn s3(defaults: &[(&str, &str)], options: &[(&str, &str)]) -> Result<Location> {
    Location::parse_with_defaults("s3://lake/silver/orders", pairs(defaults), pairs(options))
}

/// What is in force for `key`.
fn value(location: &Location, key: &str) -> Option<String> {
    location.backend.settings.get(key.parse().unwrap()).map(str::to_owned)
}

fn refusal(result: Result<Location>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

#[test]
fn local_paths_are_taken_as_they_are() {
    for (text, url, path) in [
        ("/lake/orders", "file:///lake/orders", "lake/orders"),
        ("/lake//orders/", "file:///lake/orders", "lake/orders"),
        ("/lake/./orders", "file:///lake/orders", "lake/orders"),
        ("/a b/ländle/x%20y#1/q?", "file:///a%20b/l%C3%A4ndle/x%2520y%231/q%3F", "a b/ländle/x%20y#1/q?"),
        ("file:///a%20b/ländle", "file:///a%20b/l%C3%A4ndle", "a b/ländle"),
        ("file:/lake/orders", "file:///lake/orders", "lake/orders"),
        ("FILE://localhost/lake", "file:///lake", "lake"),
        ("/lake/12:30/s3:x", "file:///lake/12:30/s3:x", "lake/12:30/s3:x"),
    ] {
        let location = parse(text).unwrap();
        assert_eq!(location.url().as_str(), url, "{text}");
        assert_eq!(location.path().as_ref(), path, "{text}");
        assert_eq!(location.to_string(), text);
        assert_eq!(location.local_path().unwrap(), PathBuf::from(format!("/{path}")), "{text}");
        // The same place by its URL, as others read it.
        assert_eq!(Path::from_url_path(location.url().path()).unwrap(), *location.path(), "{text}");
    }
    let here = std::env::current_dir().unwrap();
    assert_eq!(parse("lake/orders").unwrap().local_path().unwrap(), here.join("lake/orders"));
    assert_eq!(parse("12:30/orders").unwrap().local_path().unwrap(), here.join("12:30/orders"));
}

#[cfg(unix)]
#[test]
fn two_dots_go_up_from_where_a_link_leads() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("real/inner")).unwrap();
    std::os::unix::fs::symlink(root.join("real/inner"), root.join("link")).unwrap();
    let location = parse(&format!("{}/link/../orders", root.display())).unwrap();
    assert_eq!(location.local_path().unwrap(), root.join("real/orders"));
    let missing = refusal(parse(&format!("{}/nowhere/../orders", root.display())));
    assert!(missing.contains("cannot be followed"), "{missing}");
}

#[test]
fn keys_are_taken_as_they_are() {
    for (text, url, path) in [
        ("s3://lake/silver/orders", "s3://lake/silver/orders", "silver/orders"),
        ("s3a://lake/silver/orders/", "s3://lake/silver/orders", "silver/orders"),
        ("S3://My_Lake.x-1", "s3://My_Lake.x-1", ""),
        ("s3://lake/", "s3://lake", ""),
        ("s3://lake/d=a b/x%20y/ä#?", "s3://lake/d=a%20b/x%2520y/%C3%A4%23%3F", "d=a b/x%20y/ä#?"),
    ] {
        let location = parse(text).unwrap();
        assert_eq!(location.url().as_str(), url, "{text}");
        assert_eq!(location.path().as_ref(), path, "{text}");
        assert_eq!(location.to_string(), text);
        assert_eq!(location.local_path(), None);
        assert_eq!(Path::from_url_path(location.url().path()).unwrap(), *location.path(), "{text}");
    }
}

#[test]
fn joining_decodes_nothing() {
    for root in ["s3://lake/t", "s3://lake/t/", "/lake/t", "file:///lake/t"] {
        let file = parse(root).unwrap().join("d=a%2Fb/part 1.parquet").unwrap();
        assert!(file.url().as_str().ends_with("/t/d=a%252Fb/part%201.parquet"), "{}", file.url());
        assert!(file.path().as_ref().ends_with("t/d=a%2Fb/part 1.parquet"), "{}", file.path());
        assert!(file.to_string().ends_with("/t/d=a%2Fb/part 1.parquet"), "{file}");
    }
    let at_root = parse("s3://lake").unwrap().join("t").unwrap();
    assert_eq!((at_root.url().as_str(), at_root.path().as_ref()), ("s3://lake/t", "t"));
    for bad in ["", "/t", "t/", "a//b", "../t", "a/./b", "a\nb"] {
        assert!(parse("s3://lake").unwrap().join(bad).is_err(), "{bad:?}");
    }
    // One connection for a table and all that is in it.
    let table = s3(&[], &[("access_key_id", "k"), ("secret_access_key", "s")]).unwrap();
    let store = table.store().unwrap();
    assert!(Arc::ptr_eq(&store, &table.join("x").unwrap().store().unwrap()));
}

#[test]
fn what_is_no_location_is_refused() {
    for (text, part) in [
        ("", "empty"),
        ("gs://lake/t", "'gs'"),
        ("https://lake/t", "'https'"),
        ("s3:/lake/t", "s3://BUCKET/KEY"),
        ("s3://", "no bucket"),
        ("s3:///t", "no bucket"),
        ("s3://127.0.0.1:8333/lake/t", "port"),
        ("s3://la ke/t", "'la ke'"),
        ("s3://lake//t", "empty segment"),
        ("s3://lake/../t", ".."),
        ("file://host/lake", "host"),
        ("file:///lake?x", "query"),
        ("file:///lake#1", "fragment"),
        ("lake/a\nb", "control"),
    ] {
        let message = refusal(parse(text));
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let message = refusal(parse("s3://AKIAKEY:hunter2@lake/t"));
    assert!(!message.contains("hunter2") && !message.contains("AKIAKEY"), "{message}");

    let options = [
        ("access_key_id", "AKIAKEY"),
        ("secret_access_key", "hunter2"),
        ("session_token", "tok3n"),
        ("sse_customer_key_base64", "c0stomer"),
        ("proxy_url", "http://me:pr0xy@host"),
    ];
    let location = s3(&[], &options).unwrap();
    let shown = format!("{location} {location:?} {:?}", location.join("x").unwrap());
    for (name, secret) in options {
        assert!(!shown.contains(secret), "{shown}");
        assert!(shown.contains(name), "the names are shown: {shown}");
    }
    for option in ["access_key_id", "secret_access_key", "session_token"] {
        let mut with_break = pairs(&[("access_key_id", "AKIAKEY"), ("secret_access_key", "hunter2")]);
        with_break.retain(|(name, _)| name != option);
        with_break.push((option.to_owned(), "s3cret\n".to_owned()));
        let error = Location::parse("s3://lake/t", with_break).unwrap().store().unwrap_err();
        assert!(error.to_string().contains(option) && !error.to_string().contains("s3cret"), "{error}");
    }
}

#[test]
fn options_go_by_many_names() {
    let location = s3(
        &[],
        &[("AWS_ENDPOINT_URL", "http://127.0.0.1:8333"), ("Aws_Access_Key_Id", "k"), ("SECRET_ACCESS_KEY", "s")],
    )
    .unwrap();
    assert_eq!(value(&location, "endpoint").as_deref(), Some("http://127.0.0.1:8333"));
    assert_eq!(value(&location, "allow_http").as_deref(), Some("true"));
    assert_eq!(value(&location, "region").as_deref(), Some("us-east-1"));
    location.store().unwrap();

    let explicit = s3(&[], &[("endpoint_url", "http://x"), ("allow_http", "false"), ("default_region", "eu-north-1")]);
    assert_eq!(value(explicit.as_ref().unwrap(), "allow_http").as_deref(), Some("false"));
    assert_eq!(value(explicit.as_ref().unwrap(), "region"), None);
    let safe = s3(&[], &[("endpoint_url", "https://x")]).unwrap();
    assert_eq!(value(&safe, "allow_http"), None);
}

#[test]
fn options_that_cannot_be_obeyed_are_refused_for_any_location() {
    for text in ["s3://lake/t", "/lake/t"] {
        for (options, part) in [
            (&[("locking_provider", "dynamodb")][..], "'locking_provider' is not known"),
            (&[("region", "a"), ("AWS_REGION", "a")], "'AWS_REGION' is given twice"),
            (&[("conditional_put", "disabled")], "only 'etag'"),
            (&[("ec2_metadata_disabled", "maybe")], "neither true nor false"),
        ] {
            let message = refusal(Location::parse(text, pairs(options)));
            assert!(message.contains(part), "{message}");
        }
    }
    assert!(refusal(s3(&[], &[("bucket", "other")])).contains("'other'"));
    let error = s3(&[], &[("skip_signature", "true"), ("timeout", "soon")]).unwrap().store().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("soon"), "{error}");
    s3(&[], &[("skip_signature", "true"), ("timeout", "500ms")]).unwrap().store().unwrap();
}

#[test]
fn defaults_give_way_to_options_and_to_nonsense() {
    let environment = [
        ("AWS_PROFILE", "work"),
        ("HOME", "/root"),
        ("AWS_BUCKET", "other"),
        ("AWS_CONDITIONAL_PUT", "disabled"),
        ("AWS_SESSION_TOKEN", "theirs"),
        ("AWS_ACCESS_KEY_ID", "theirs"),
        ("AWS_SECRET_ACCESS_KEY", "theirs"),
        ("AWS_ENDPOINT", "http://old"),
        ("AWS_ENDPOINT_URL", "http://new"),
        ("AWS_ENDPOINT_URL_S3", "http://special"),
        ("AWS_REGION", ""),
    ];
    let alone = s3(&environment, &[]).unwrap();
    assert_eq!(value(&alone, "endpoint").as_deref(), Some("http://new"));
    assert_eq!(value(&alone, "aws_endpoint_url_s3").as_deref(), Some("http://special"));
    assert_eq!(value(&alone, "session_token").as_deref(), Some("theirs"));
    assert_eq!(value(&alone, "region").as_deref(), Some("us-east-1"), "an empty variable is an unset one");
    alone.store().unwrap();

    let options = [("endpoint_url", "http://mine"), ("access_key_id", "mine"), ("secret_access_key", "mine")];
    let over = s3(&environment, &options).unwrap();
    assert_eq!(value(&over, "endpoint").as_deref(), Some("http://mine"));
    assert_eq!(value(&over, "aws_endpoint_url_s3"), None);
    assert_eq!(value(&over, "session_token"), None, "a token belongs to its key");
    assert_eq!(value(&s3(&environment, &[("session_token", "")]).unwrap(), "session_token"), None);
    let region = s3(&[("AWS_REGION", "theirs")], &[("default_region", "mine")]).unwrap();
    assert_eq!((value(&region, "region"), value(&region, "default_region")), (None, Some("mine".to_owned())));
}

#[test]
fn no_machine_is_asked_for_credentials_where_that_is_switched_off() {
    let off = [("AWS_EC2_METADATA_DISABLED", "true")];
    let error = s3(&off, &[]).unwrap().store().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("no credentials for s3://lake/silver/orders"), "{error}");
    s3(&off, &[("skip_signature", "true")]).unwrap().store().unwrap();
    s3(&off, &[("access_key_id", "k"), ("secret_access_key", "s")]).unwrap().store().unwrap();
    // One half of a pair is a mistake, not an absence.
    let half = s3(&off, &[("access_key_id", "k")]).unwrap().store().unwrap_err();
    assert!(half.to_string().contains("SecretAccessKey"), "{half}");
}

#[tokio::test]
async fn a_store_can_be_wrapped() {
    use crate::store::fault::{FailingStore, Plan};
    use object_store::ObjectStoreExt;
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan::new();
    let location = parse(dir.path().to_str().unwrap()).unwrap();
    let wrapped = location.wrapped(|inner| Arc::new(FailingStore::new(inner, plan.clone()))).unwrap();
    let file = wrapped.join("a").unwrap();
    file.store().unwrap().put(file.path(), "x".into()).await.unwrap();
    assert_eq!(plan.calls().len(), 1);
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"x");
}
