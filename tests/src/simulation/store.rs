//! The store as a simulated process sees it.
//!
//! Before a put to the log or a listing others may act, and between it and its answer, too. All else is done at once: of
//! reads, deletions and new data files nobody can tell whether others acted before them or before the put or listing ahead
//! of them. And a load has several of those under way, so that their order would be the machine's choice.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use deltaonce::fault::{Answer, Effect};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::process::{Life, Point};
use super::sea::{Zombie, at_once};

#[derive(Debug, Clone)]
pub(super) struct SimulatedStore(Arc<Life>);

/// What becomes of a call.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Well,
    Faulty(Effect, Answer),
    /// The process dies at it.
    Deadly(Effect),
}

/// How a call that is no put of a log entry can go wrong.
const READ_ANSWERS: [Answer; 5] =
    [Answer::Timeout, Answer::Reset, Answer::Status(500), Answer::Status(503), Answer::Status(429)];

impl SimulatedStore {
    pub(super) fn new(life: Arc<Life>) -> Self {
        Self(life)
    }

    fn say(&self, call: &str, what: impl fmt::Display) {
        self.0.sea.say(format!("{call}: {what}"));
    }

    async fn stand(&self, call: &str, when: &str) -> bool {
        self.0.stand(Point { name: format!("{when} {call}"), until: None }).await
    }

    /// An event of the weather, which calm processes are spared.
    fn happens(&self, call: &str, what: &str, per_mille: u64) -> bool {
        !self.0.calm && self.0.sea.dice.happens(&format!("{call} {what}"), per_mille)
    }

    fn time_passes(&self, call: &str) {
        let (sea, slow) = (&self.0.sea, self.0.sea.weather.slow);
        sea.passes(Duration::from_millis(1 + sea.dice.below(&format!("{call} takes"), 20)));
        if self.happens(call, "is slow", slow) {
            let seconds = 1 + sea.dice.below(&format!("{call} takes seconds"), 30);
            sea.passes(Duration::from_secs(seconds));
            self.say(call, format_args!("takes {seconds} s"));
        }
    }

    fn fate_of_put(&self, call: &str, path: &Path, creates: bool) -> Fate {
        use Answer::{Io, Reset, Status, Timeout};
        use Effect::{Late, Lost, Taken};
        let (dice, weather) = (&self.0.sea.dice, &self.0.sea.weather);
        let effects = [Lost, Taken, Late(u64::MAX)];
        if self.happens(call, "is the last", weather.crash) {
            return Fate::Deadly(*dice.pick(&format!("{call} last effect"), &effects));
        }
        let is_entry = creates && is_entry(path);
        if !self.happens(call, "fails", if is_entry { weather.entry_fault } else { weather.other_fault }) {
            return Fate::Well;
        }
        let name = format!("{call} fault");
        let (effect, answer) = *if is_entry {
            dice.pick(
                &name,
                &[
                    (Lost, Timeout),
                    (Lost, Status(409)),
                    (Lost, Status(412)),
                    (Lost, Status(429)),
                    (Lost, Status(500)),
                    (Lost, Status(503)),
                    (Lost, Status(403)),
                    (Lost, Io(std::io::ErrorKind::StorageFull)),
                    (Taken, Timeout),
                    (Taken, Reset),
                    (Taken, Status(409)),
                    (Taken, Status(412)),
                    (Taken, Status(500)),
                    (Taken, Status(503)),
                    (Late(u64::MAX), Timeout),
                    (Late(u64::MAX), Reset),
                    (Late(u64::MAX), Status(503)),
                ],
            )
        } else {
            dice.pick(
                &name,
                &[(Lost, Timeout), (Lost, Status(503)), (Lost, Status(403)), (Taken, Reset), (Late(0), Timeout)],
            )
        };
        Fate::Faulty(effect, answer)
    }

    /// The error of a read that goes wrong; dead processes read nothing.
    fn read_fails(&self, call: &str, path: &Path) -> Result<()> {
        let (dice, weather) = (&self.0.sea.dice, &self.0.sea.weather);
        if self.happens(call, "is the last", weather.crash / 4) {
            self.say(call, "the process dies");
            self.0.kill();
        }
        if self.0.is_dead() {
            return Err(Answer::Reset.error(path, false));
        }
        if self.happens(call, "fails", weather.other_fault) {
            let answer = *dice.pick(&format!("{call} fault"), &READ_ANSWERS);
            self.say(call, format_args!("answered {answer:?}"));
            return Err(answer.error(path, false));
        }
        Ok(())
    }

    /// Lists, perhaps without what came last to the log.
    async fn listed(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(&dyn ObjectStore) -> Result<Vec<ObjectMeta>>,
    ) -> Result<Vec<ObjectMeta>> {
        let within = prefix.cloned().unwrap_or_default();
        let call = self.0.name_call(&format!("list {within}"));
        if !self.stand(&call, "before").await {
            return Err(Answer::Reset.error(&within, false));
        }
        self.time_passes(&call);
        self.read_fails(&call, &within)?;
        let mut found = list(self.0.sea.store.as_ref())?;
        let entries = found.iter().filter(|meta| is_entry(&meta.location)).count();
        if entries > 1 && self.happens(&call, "is stale", self.0.sea.weather.stale) {
            let newest = found.iter().map(|meta| &meta.location).filter(|path| is_entry(path)).max().cloned();
            found.retain(|meta| Some(&meta.location) != newest.as_ref());
            self.say(&call, "without its newest entry");
        } else {
            self.say(&call, format_args!("{} objects", found.len()));
        }
        if self.stand(&call, "after").await { Ok(found) } else { Err(Answer::Reset.error(&within, false)) }
    }

    fn listing(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (own, prefix) = (self.clone(), prefix.cloned());
        let listed = async move {
            let list = |store: &dyn ObjectStore| at_once(list(store).try_collect());
            own.listed(prefix.as_ref(), list).await.map(|found| stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }
}

/// Whether it is an entry of a log.
pub(super) fn is_entry(path: &Path) -> bool {
    path.as_ref().contains("_delta_log/0") && path.as_ref().ends_with(".json")
}

impl fmt::Display for SimulatedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimulatedStore({})", self.0.name)
    }
}

#[async_trait]
impl ObjectStore for SimulatedStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let creates = options.mode == PutMode::Create;
        let call = self.0.name_call(&format!("put {path}"));
        let broken = Answer::Reset.error(path, creates);
        let is_log = path.as_ref().contains("/_delta_log/");
        let is_alive = if is_log { self.stand(&call, "before").await } else { !self.0.is_dead() };
        if !is_alive {
            return Err(broken);
        }
        self.time_passes(&call);
        let fate = self.fate_of_put(&call, path, creates);
        let effect = match fate {
            Fate::Well => None,
            Fate::Faulty(effect, _) | Fate::Deadly(effect) => Some(effect),
        };
        let answer = match effect {
            Some(Effect::Lost) => None,
            Some(Effect::Late(_)) => {
                self.0.sea.will_land(Zombie { call: call.clone(), path: path.clone(), payload, options });
                None
            }
            Some(Effect::Taken) | None => Some(at_once(self.0.sea.store.put_opts(path, payload, options))),
        };
        let done = match (&answer, effect) {
            (None, Some(Effect::Late(_))) => "under way",
            (None, _) => "lost",
            (Some(Ok(_)), _) => "stored",
            (Some(Err(_)), _) => "not stored, since it exists",
        };
        match fate {
            Fate::Well => self.say(&call, done),
            Fate::Faulty(_, answer) => self.say(&call, format_args!("{done}, answered {answer:?}")),
            Fate::Deadly(_) => {
                self.say(&call, format_args!("{done}, and the process dies"));
                self.0.kill();
            }
        }
        let is_alive = if is_log { self.stand(&call, "after").await } else { !self.0.is_dead() };
        if !is_alive {
            return Err(broken);
        }
        match (fate, answer) {
            (Fate::Faulty(_, fault), _) => Err(fault.error(path, creates)),
            (_, Some(answer)) => answer,
            (_, None) => Err(broken),
        }
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        unimplemented!("the files of a simulation are small")
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let call = self.0.name_call(&format!("get {path}"));
        self.time_passes(&call);
        self.read_fails(&call, path)?;
        let found = at_once(self.0.sea.store.get_opts(path, options))?;
        if self.happens(&call, "is torn", self.0.sea.weather.other_fault) {
            self.say(&call, "breaks off");
            let GetResult { meta, range, attributes, .. } = found;
            let error = Answer::Reset.error(path, false);
            let payload =
                GetResultPayload::Stream(stream::iter([Ok(Bytes::from_static(b"{\"add\"")), Err(error)]).boxed());
            return Ok(GetResult { payload, meta, range, attributes });
        }
        Ok(found)
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let call = self.0.name_call(&format!("get ranges of {path}"));
        self.time_passes(&call);
        self.read_fails(&call, path)?;
        at_once(self.0.sea.store.get_ranges(path, ranges))
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let own = self.clone();
        paths
            .map(move |path| {
                let path = path?;
                let call = own.0.name_call(&format!("delete {path}"));
                own.time_passes(&call);
                own.read_fails(&call, &path)?;
                own.say(&call, "deleted");
                at_once(own.0.sea.store.delete(&path))?;
                Ok(path)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let within = prefix.cloned();
        self.listing(prefix, move |store| store.list(within.as_ref()))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let (within, offset) = (prefix.cloned(), offset.clone());
        self.listing(prefix, move |store| store.list_with_offset(within.as_ref(), &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        let list = |store: &dyn ObjectStore| {
            result = at_once(store.list_with_delimiter(prefix))?;
            Ok(std::mem::take(&mut result.objects))
        };
        let objects = self.listed(prefix, list).await?;
        Ok(ListResult { objects, ..result })
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unimplemented!("nothing copies objects of a table")
    }
}
