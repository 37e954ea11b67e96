use object_store::PutPayload;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::ErrorKind;

/// A file that Spark wrote (table `deletion_vectors` of `fixtures/spark`), in hexadecimal.
const SPARK: &str = "\
    01000000b0d1d339640100000000000000000000003a30000001000000000047001000000002000900100017001e0025002c\
    0033003a00410048004f0056005d0064006b0072007900800087008e0095009c00a300aa00b100b800bf00c600cd00d400db\
    00e200e900f000f700fe0005010c0113011a01210128012f0136013d0144014b0152015901600167016e0175017c0183018a\
    01910198019f01a601ad01b401bb01c201c901d001d701de01e501ec01f30137a30e27000000aed1d3396401000000000000\
    00000000003a30000001000000000046001000000005000c0013001a00210028002f0036003d0044004b0052005900600067\
    006e0075007c0083008a00910098009f00a600ad00b400bb00c200c900d000d700de00e500ec00f300fa00010108010f0116\
    011d0124012b0132013901400147014e0155015c0163016a01710178017f0186018d0194019b01a201a901b001b701be01c5\
    01cc01d301da01e101e801ef0169b3c42f00000022d1d339640100000000000000000000003a300000010000000000000010\
    0000000100eebd85f4";
/// Its name in the log.
const SPARK_NAME: &str = "U$Nq*sg7FrLR>kw+.6@O";
const SPARK_OBJECT: &str = "deletion_vector_b14c3d60-57b5-4573-9435-32cecc8372c4.bin";

/// The example of the protocol.
const INLINE: &str = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";

fn spark() -> Vec<u8> {
    let digits: Vec<_> = SPARK.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

/// What the log of Spark's table says of its vectors, and the rows that they mask.
fn spark_vectors() -> Vec<(DeletionVector, RoaringTreemap)> {
    let sevenths = |first| (first..500).step_by(7).collect();
    [(1, 176, sevenths(2)), (185, 174, sevenths(5)), (367, 34, RoaringTreemap::from_iter([1]))]
        .into_iter()
        .map(|(offset, size, rows)| (vector("u", SPARK_NAME, Some(offset), size, rows.len() as i64), rows))
        .collect()
}

fn vector(storage: &str, at: &str, offset: Option<i32>, size: i32, cardinality: i64) -> DeletionVector {
    DeletionVector {
        storage_type: storage.to_owned(),
        path_or_inline_dv: at.to_owned(),
        offset,
        size_in_bytes: size,
        cardinality,
    }
}

fn file(vector: Option<DeletionVector>, stats: Option<Value>) -> AddFile {
    let file = json!({
        "path": "p=1/a%20b.parquet", "size": 1, "modificationTime": 0, "dataChange": true, "deletionVector": vector,
        "stats": stats.map(|stats| stats.to_string()),
    });
    serde_json::from_value(file).unwrap()
}

async fn stored(objects: impl IntoIterator<Item = (Path, Bytes)>) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (path, bytes) in objects {
        store.put(&path, PutPayload::from_bytes(bytes)).await.unwrap();
    }
    Arc::new(store)
}

async fn spark_store(bytes: Vec<u8>) -> Arc<dyn ObjectStore> {
    stored([(Path::from(SPARK_OBJECT), bytes.into())]).await
}

async fn rows(store: &Arc<dyn ObjectStore>, vector: &DeletionVector) -> Result<RoaringTreemap> {
    read(store, &file(Some(vector.clone()), None)).await
}

/// The end of the one sentence that refuses a vector.
async fn refusal(store: &Arc<dyn ObjectStore>, vector: &DeletionVector) -> String {
    refused(rows(store, vector).await)
}

fn refused(read: Result<RoaringTreemap>) -> String {
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let why = error.message().strip_prefix("the deletion vector of data file 'p=1/a%20b.parquet' ");
    why.unwrap_or_else(|| panic!("{error}")).to_owned()
}

/// A vector's data: the magic number, the number of bitmaps, and they.
fn data(magic: u32, count: u64, bitmaps: &[(u32, RoaringBitmap)]) -> Vec<u8> {
    let mut data = [&magic.to_le_bytes()[..], &count.to_le_bytes()].concat();
    for (key, bitmap) in bitmaps {
        data.extend(key.to_le_bytes());
        bitmap.serialize_into(&mut data).unwrap();
    }
    data
}

/// A file of one vector that starts at `offset`.
fn framed(offset: usize, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.resize(offset, 0);
    bytes.extend((data.len() as i32).to_be_bytes());
    bytes.extend(data);
    bytes.extend(crc32fast::hash(data).to_be_bytes());
    bytes
}

fn uuids() -> impl FnMut() -> Uuid {
    let mut next = 0_u128;
    move || {
        next += 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        Uuid::from_u128(next)
    }
}

#[tokio::test]
async fn a_file_without_a_vector_masks_nothing() {
    assert_eq!(read(&stored([]).await, &file(None, None)).await.unwrap(), RoaringTreemap::new());
}

#[tokio::test]
async fn the_protocols_example_is_read() {
    let store = stored([]).await;
    let example = vector("i", INLINE, None, 44, 6);
    assert_eq!(rows(&store, &example).await.unwrap(), RoaringTreemap::from_iter([3, 4, 7, 11, 18, 29]));
    assert_eq!(example.object(), None);
    for size in [0, 40, 45, 48, i32::MAX] {
        let refusal = refusal(&store, &vector("i", INLINE, None, size, 6)).await;
        assert_eq!(refusal, format!("has 44 bytes, and {size} by the log"));
    }
}

#[tokio::test]
async fn a_vector_in_the_log_may_be_filled_up_to_whole_groups() {
    let store = stored([]).await;
    let odd = data(PORTABLE, 1, &[(0, RoaringBitmap::from_iter([5]))]);
    assert_eq!(odd.len() % 4, 2);
    let filled = [&odd[..], &[0, 0]].concat();
    for text in [z85::encode(&filled), z85::encode(&odd)] {
        let vector = vector("i", &text, None, odd.len() as i32, 1);
        assert_eq!(rows(&store, &vector).await.unwrap(), RoaringTreemap::from_iter([5]));
    }
    let something = z85::encode([&odd[..], &[0, 1]].concat());
    let refusal = refusal(&store, &vector("i", &something, None, odd.len() as i32, 1)).await;
    assert_eq!(refusal, format!("has {} bytes, and {} by the log", odd.len() + 2, odd.len()));
}

#[tokio::test]
async fn what_spark_wrote_is_read() {
    let store = spark_store(spark()).await;
    for (vector, expected) in spark_vectors() {
        assert_eq!(vector.object(), Some(Path::from(SPARK_OBJECT)));
        assert_eq!(rows(&store, &vector).await.unwrap(), expected);
    }
}

#[test]
fn the_same_rows_are_the_bytes_that_spark_wrote() {
    let (vectors, rows): (Vec<_>, Vec<_>) = spark_vectors().into_iter().unzip();
    let files = encode(&rows, || "b14c3d60-57b5-4573-9435-32cecc8372c4".parse().unwrap()).unwrap();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!((file.path.as_ref(), &file.bytes[..]), (SPARK_OBJECT, &spark()[..]));
    assert_eq!(file.vectors, vectors);
}

#[tokio::test]
async fn a_vector_cut_off_anywhere_is_refused() {
    let whole = spark();
    let folder = tempfile::tempdir().unwrap();
    let local: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    for (vector, _) in spark_vectors() {
        let end = (vector.offset.unwrap() + 4 + vector.size_in_bytes + 4) as usize;
        for length in 0..end {
            let store = spark_store(whole[..length].to_vec()).await;
            std::fs::write(folder.path().join(SPARK_OBJECT), &whole[..length]).unwrap();
            let expected = format!("should end at byte {end} of '{SPARK_OBJECT}', which has {length} bytes");
            assert_eq!(refusal(&store, &vector).await, expected);
            assert_eq!(refusal(&local, &vector).await, expected);
        }
    }
}

#[tokio::test]
async fn a_vector_with_any_bit_turned_is_refused() {
    let (vector, _) = spark_vectors().swap_remove(2);
    for place in [0].into_iter().chain(367..spark().len()) {
        for bit in 0..8 {
            let mut bytes = spark();
            bytes[place] ^= 1 << bit;
            let why = refusal(&spark_store(bytes).await, &vector).await;
            let expected = match place {
                0 => "which is of version",
                367..371 => "bytes by its file, and 34 by the log",
                _ => "is damaged: its checksum does not match",
            };
            assert!(why.contains(expected), "{place}: {why}");
        }
    }
}

#[tokio::test]
async fn what_the_log_says_must_agree() {
    let store = spark_store(spark()).await;
    let (good, _) = spark_vectors().swap_remove(0);
    for (size, why) in [
        (175, "has 176 bytes by its file, and 175 by the log"),
        (177, "has 176 bytes by its file, and 177 by the log"),
        (-1, "has -1 bytes by the log"),
        (i32::MIN, "has -2147483648 bytes by the log"),
    ] {
        assert_eq!(refusal(&store, &DeletionVector { size_in_bytes: size, ..good.clone() }).await, why);
    }
    let huge = DeletionVector { size_in_bytes: i32::MAX, ..good.clone() };
    let why = format!("should end at byte 2147483656 of '{SPARK_OBJECT}', which has {} bytes", spark().len());
    assert_eq!(refusal(&store, &huge).await, why);
    for cardinality in [71, 73, 0, -1, -72, i64::MIN, i64::MAX] {
        let why = format!("masks 72 rows, and {cardinality} by the log");
        assert_eq!(refusal(&store, &DeletionVector { cardinality, ..good.clone() }).await, why);
    }
    for (stats, fits) in [
        (json!({"numRecords": 500}), true),
        (json!({"numRecords": 499}), false),
        (json!({"numRecords": 0}), false),
        (json!({}), true),
        (json!("odd"), true),
    ] {
        let read = read(&store, &file(Some(good.clone()), Some(stats.clone()))).await;
        if fits {
            assert_eq!(read.unwrap().len(), 72);
        } else {
            let rows = &stats["numRecords"];
            assert_eq!(refused(read), format!("masks row 499, and the file has {rows} rows by its statistics"));
        }
    }
}

#[tokio::test]
async fn an_offset_must_be_behind_the_version_and_may_be_absent() {
    let store = spark_store(spark()).await;
    let (first, expected) = spark_vectors().swap_remove(0);
    let absent = DeletionVector { offset: None, ..first.clone() };
    assert_eq!(rows(&store, &absent).await.unwrap(), expected);
    for offset in [0, -1, i32::MIN] {
        let why = refusal(&store, &DeletionVector { offset: Some(offset), ..first.clone() }).await;
        assert_eq!(why, format!("starts at byte {offset} of '{SPARK_OBJECT}'"));
    }
    for offset in [2, 184, 186] {
        let why = refusal(&store, &DeletionVector { offset: Some(offset), ..first.clone() }).await;
        assert!(why.ends_with("bytes by its file, and 176 by the log"), "{why}");
    }
    let why = refusal(&store, &DeletionVector { offset: Some(i32::MAX), ..first }).await;
    assert_eq!(why, format!("should end at byte 2147483831 of '{SPARK_OBJECT}', which has 409 bytes"));
}

#[tokio::test]
async fn a_vector_far_into_its_file_is_read_and_its_version_seen() {
    let set = RoaringTreemap::from_iter([7, 1 << 40]);
    let data = data(PORTABLE, 2, &[(0, RoaringBitmap::from_iter([7])), (1 << 8, RoaringBitmap::from_iter([0]))]);
    for offset in [NEAR, NEAR + 1, 3 * 1024 * 1024] {
        let far = vector("u", SPARK_NAME, Some(offset as i32), data.len() as i32, 2);
        let mut bytes = framed(offset as usize, &data);
        assert_eq!(rows(&spark_store(bytes.clone()).await, &far).await.unwrap(), set);
        bytes[0] = 2;
        let why = refusal(&spark_store(bytes).await, &far).await;
        assert_eq!(why, format!("is in '{SPARK_OBJECT}', which is of version 2 and not 1"));
    }
}

#[tokio::test]
async fn a_vector_that_is_gone_may_have_been_vacuumed() {
    for vector in [vector("u", SPARK_NAME, Some(1), 34, 1), vector("u", SPARK_NAME, Some(i32::MAX), 34, 1)] {
        let error = rows(&stored([]).await, &vector).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retryable);
        let message =
            "the deletion vector of data file 'p=1/a%20b.parquet' is in the table's log but not in its storage";
        assert_eq!(error.message(), message);
        assert!(error.advice().unwrap().contains("vacuumed"));
    }
}

#[tokio::test]
async fn a_place_is_followed_within_the_tables_folder_only() {
    let store = stored([]).await;
    let prefixed = vector("u", &format!("aB-_9{SPARK_NAME}"), Some(1), 34, 1);
    assert_eq!(prefixed.object(), Some(Path::from(format!("aB-_9/{SPARK_OBJECT}"))));
    let no_file = "names no file of deletion vectors";
    let not_known = "which is not known";
    for (storage, at, why) in [
        ("u", "", no_file),
        ("u", "short", no_file),
        ("u", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", no_file),
        ("u", "x\u{e9}0000000000000000000", no_file),
        ("u", "#################zzz", no_file),
        ("u", "000000000000000###00", no_file),
        ("u", &format!("../{SPARK_NAME}"), no_file),
        ("u", &format!("..{SPARK_NAME}"), no_file),
        ("u", &format!("a/b{SPARK_NAME}"), no_file),
        ("u", &format!("%2e%2e{SPARK_NAME}"), no_file),
        ("u", &format!("\u{e9}{SPARK_NAME}"), no_file),
        ("p", "s3://other/deletion_vector.bin", "an absolute path, and those are not followed"),
        ("p", "file:///etc/passwd", "an absolute path, and those are not followed"),
        ("r", SPARK_OBJECT, not_known),
        ("", SPARK_NAME, not_known),
        ("U", SPARK_NAME, not_known),
    ] {
        let vector = vector(storage, at, Some(1), 34, 1);
        assert_eq!(vector.object(), None);
        let refusal = refusal(&store, &vector).await;
        assert!(refusal.ends_with(why), "{at}: {refusal}");
    }
    let both = refusal(&store, &vector("i", INLINE, Some(1), 44, 6)).await;
    assert_eq!(both, "is in the log itself and has an offset");
    for odd in ["~~~~~", "1234", "\u{e9}\u{e9}1", "#####", "####z"] {
        let refusal = refusal(&store, &vector("i", odd, None, 4, 1)).await;
        assert!(refusal.starts_with("is no text in Z85") || refusal.starts_with("has "), "{odd}: {refusal}");
    }
}

#[test]
fn a_vector_is_known_by_where_it_is() {
    assert_eq!(vector("u", SPARK_NAME, Some(185), 1, 1).unique_id(), "uU$Nq*sg7FrLR>kw+.6@O@185");
    assert_eq!(vector("i", INLINE, None, 1, 1).unique_id(), format!("i{INLINE}"));
}

#[test]
fn data_that_is_no_set_of_rows_is_refused() {
    let one = || RoaringBitmap::from_iter([1]);
    let good = data(PORTABLE, 1, &[(0, one())]);
    assert_eq!(decode(&good).unwrap(), RoaringTreemap::from_iter([1]));
    let gap = data(PORTABLE, 3, &[(0, RoaringBitmap::new()), (1, one()), (2, RoaringBitmap::new())]);
    assert_eq!(decode(&gap).unwrap(), RoaringTreemap::from_iter([(1 << 32) + 1]));
    let last = data(PORTABLE, 1, &[(i32::MAX as u32, RoaringBitmap::from_iter([u32::MAX]))]);
    assert_eq!(decode(&last).unwrap().max(), Some(i64::MAX as u64));

    for (data, why) in [
        (data(NATIVE, 1, &[]), "is in the native format (1681511376), which only its writer can read"),
        (data(PORTABLE.swap_bytes(), 1, &[]), "is in a format that is not known (3520280932)"),
        (data(PORTABLE, 1, &[(1 << 31, one())]), "is damaged: bitmap 2147483648 is out of order"),
        (data(PORTABLE, 1, &[(u32::MAX, one())]), "is damaged: bitmap 4294967295 is out of order"),
        (data(PORTABLE, 2, &[(3, one()), (3, one())]), "is damaged: bitmap 3 is out of order"),
        (data(PORTABLE, 2, &[(3, one()), (0, one())]), "is damaged: bitmap 0 is out of order"),
        (data(PORTABLE, 2, &[(0, RoaringBitmap::new()), (0, one())]), "is damaged: bitmap 0 is out of order"),
        (data(PORTABLE, u64::MAX, &[(0, one())]), "is cut off"),
        (data(PORTABLE, 0, &[(0, one())]), "is damaged: 22 bytes are left over"),
    ] {
        assert_eq!(decode(&data).unwrap_err(), why);
    }
    // Counts of containers, runs and values that the bytes do not bear out.
    for bitmap in [
        &[0x3a, 0x30, 0, 0, 0xff, 0xff, 0xff, 0xff][..],
        &[0x3a, 0x30, 0, 0, 0, 0, 1, 0],
        &[0x3b, 0x30, 0xff, 0xff],
        &[0x3b, 0x30, 0, 0, 1, 0, 0, 0, 0, 0xff, 0xff],
        &[0x3b, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        &[0x3b, 0x30, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 1, 0],
        &[0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 16, 0, 0, 0],
        &[0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 2, 0, 2, 0],
        &[0, 0, 0, 0],
    ] {
        let data = [&data(PORTABLE, 1, &[])[..], &[0; 4], bitmap].concat();
        assert!(decode(&data).unwrap_err().starts_with("is damaged: bitmap 0 cannot be read: "), "{bitmap:?}");
    }
}

#[test]
fn data_cut_off_anywhere_is_refused() {
    let mut runs = RoaringBitmap::from_iter(100..100_000);
    runs.optimize();
    let data = data(PORTABLE, 2, &[(0, runs), (7, RoaringBitmap::from_iter((0..9000).step_by(2)))]);
    decode(&data).unwrap();
    for length in 0..data.len() {
        decode(&data[..length]).unwrap_err();
    }
}

#[test]
fn rows_one_after_the_other_take_little_space() {
    let set = RoaringTreemap::from_iter(0..10_000_000);
    let files = encode(&[set], uuids()).unwrap();
    assert!(files[0].bytes.len() < 3000, "{}", files[0].bytes.len());
}

#[test]
fn vectors_share_a_file_until_it_is_full() {
    assert!(encode(&[], || panic!("no file, no name")).unwrap().is_empty());
    let sets = vec![RoaringTreemap::from_iter([1]); 7];
    // Of one such vector there are 42 bytes.
    for (full, in_files) in [(0, &[1; 7][..]), (43, &[1; 7]), (44, &[2, 2, 2, 1]), (1000, &[7])] {
        let files = encode_up_to(full, &sets, uuids()).unwrap();
        assert_eq!(files.iter().map(|file| file.vectors.len()).collect::<Vec<_>>(), in_files, "{full}");
    }
}

#[test]
fn a_row_that_no_file_can_have_is_not_written() {
    let error = encode(&[RoaringTreemap::from_iter([1 << 63])], uuids()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

/// Sets of rows: alone, in runs, in dense stretches, and far apart.
fn sets() -> impl Strategy<Value = RoaringTreemap> {
    let first = prop_oneof![0_u64..10, 0_u64..1_000_000, (1_u64 << 32) - 5..(1 << 32) + 5, 0_u64..1 << 62];
    let stretch = prop_oneof![
        (1_u64..10, Just(1_u64)),
        (1_u64..300_000, Just(1)),
        (1_u64..10_000, Just(2)),
        (1_u64..300, Just(70_000)),
        (1_u64..10, Just(1 << 31)),
    ];
    prop::collection::vec((first, stretch), 0..6).prop_map(|stretches| {
        let mut set = RoaringTreemap::new();
        for (first, (count, step)) in stretches {
            match step {
                1 => _ = set.insert_range(first..first + count),
                _ => set.extend((0..count).map(|i| first + i * step)),
            }
        }
        set
    })
}

async fn written_and_read(sets: Vec<RoaringTreemap>, full: usize) {
    let files = encode_up_to(full, &sets, uuids()).unwrap();
    let vectors: Vec<_> = files.iter().flat_map(|file| file.vectors.clone()).collect();
    for file in &files {
        assert!(file.vectors.iter().all(|vector| vector.object().as_ref() == Some(&file.path)));
    }
    let store = stored(files.into_iter().map(|file| (file.path, file.bytes))).await;
    assert_eq!(vectors.len(), sets.len());
    for (vector, set) in vectors.iter().zip(&sets) {
        assert_eq!(&rows(&store, vector).await.unwrap(), set);
        if let Some(last) = set.max() {
            let enough = json!({"numRecords": last + 1});
            assert_eq!(&read(&store, &file(Some(vector.clone()), Some(enough))).await.unwrap(), set);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(sets in prop::collection::vec(sets(), 0..5), full in prop_oneof![Just(1), Just(FULL)]) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(written_and_read(sets, full));
    }

    #[test]
    fn whatever_the_data_it_is_read_or_refused(
        set in sets(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        heads_only: bool,
    ) {
        let mut set = set;
        set.optimize();
        let mut data = PORTABLE.to_le_bytes().to_vec();
        set.serialize_into(&mut data).unwrap();
        for (place, byte) in places {
            let reach = if heads_only { data.len().min(64) } else { data.len() };
            data[place.index(reach)] = byte;
        }
        if let Ok(rows) = decode(&data) {
            assert!(rows.max().is_none_or(|last| last <= i64::MAX as u64));
            assert_eq!(rows.iter().take(1000).count() as u64, rows.len().min(1000));
        }
    }

    #[test]
    fn whatever_the_bytes_they_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), run: bool) {
        let cookie: &[u8] = if run { &[0x3b, 0x30] } else { &[0x3a, 0x30, 0, 0] };
        for start in [&[][..], &PORTABLE.to_le_bytes(), &[&data(PORTABLE, 1, &[])[..], &[0; 4], cookie].concat()] {
            let _ = decode(&[start, &bytes].concat());
        }
    }
}
