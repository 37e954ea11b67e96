//! What all processes of a simulation share: the store beneath, the time, what is still under way, and the story so far.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutOptions, PutPayload};

use super::dice::Dice;

/// How often things go wrong, in a thousand of the times when they could.
#[derive(Debug)]
pub(super) struct Weather {
    pub(super) entry_fault: u64,
    pub(super) other_fault: u64,
    pub(super) crash: u64,
    pub(super) slow: u64,
    pub(super) stale: u64,
    pub(super) switch: u64,
    pub(super) rival: u64,
}

impl Weather {
    fn of(dice: &Dice) -> Self {
        let pick = |name: &str, from: &[u64]| *dice.pick(&format!("weather: {name}"), from);
        Self {
            entry_fault: pick("entries", &[0, 150, 350, 600]),
            other_fault: pick("others", &[0, 5, 25]),
            crash: pick("crashes", &[0, 5, 25]),
            slow: pick("slow", &[0, 20, 80]),
            stale: pick("stale", &[0, 0, 60]),
            switch: pick("switches", &[100, 300, 600]),
            rival: pick("rivals", &[0, 40, 120]),
        }
    }
}

/// A put whose client does not wait for it any more.
#[derive(Debug)]
pub(super) struct Zombie {
    pub(super) call: String,
    pub(super) path: Path,
    pub(super) payload: PutPayload,
    pub(super) options: PutOptions,
}

#[derive(Debug)]
pub(super) struct Sea {
    pub(super) dice: Dice,
    pub(super) weather: Weather,
    pub(super) store: Arc<InMemory>,
    /// Files that a vacuum took away, for the checks at the end.
    pub(super) vacuumed: Mutex<BTreeMap<String, Bytes>>,
    microseconds: AtomicU64,
    zombies: Mutex<Vec<Zombie>>,
    story: Mutex<Vec<String>>,
}

impl Sea {
    pub(super) fn new(dice: Dice) -> Self {
        Self {
            weather: Weather::of(&dice),
            dice,
            store: Arc::default(),
            vacuumed: Mutex::default(),
            microseconds: AtomicU64::new(0),
            zombies: Mutex::default(),
            story: Mutex::default(),
        }
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_micros(self.microseconds.load(Ordering::Relaxed))
    }

    pub(super) fn passes(&self, time: Duration) {
        self.microseconds.fetch_add(u64::try_from(time.as_micros()).expect("a short time"), Ordering::Relaxed);
    }

    /// Time goes on to `until`, if it is not later already.
    pub(super) fn passes_to(&self, until: Duration) {
        self.passes(until.saturating_sub(self.time()));
    }

    pub(super) fn say(&self, line: String) {
        self.story.lock().expect("nobody panicked").push(line);
    }

    pub(super) fn story(&self) -> Vec<String> {
        self.story.lock().expect("nobody panicked").clone()
    }

    /// All that is in the store, each with its size and a hash of its content.
    pub(super) fn objects(&self) -> Vec<String> {
        let mut listed: Vec<_> = at_once(self.store.list(None).try_collect()).expect("memory lists");
        listed.sort_by(|a: &ObjectMeta, b| a.location.cmp(&b.location));
        let line = |meta: &ObjectMeta| {
            let bytes = at_once(async { self.store.get(&meta.location).await?.bytes().await }).expect("it is there");
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            format!("{} {} {:016x}", meta.location, meta.size, hasher.finish())
        };
        listed.iter().map(line).collect()
    }

    pub(super) fn will_land(&self, zombie: Zombie) {
        self.zombies.lock().expect("nobody panicked").push(zombie);
    }

    /// Carries out the put that has waited longest; false: there is none.
    pub(super) fn land_one(&self) -> bool {
        let zombie = {
            let mut zombies = self.zombies.lock().expect("nobody panicked");
            if zombies.is_empty() {
                return false;
            }
            zombies.remove(0)
        };
        let stored = at_once(self.store.put_opts(&zombie.path, zombie.payload, zombie.options)).is_ok();
        self.say(format!("{} comes late and is {}", zombie.call, if stored { "stored" } else { "too late" }));
        true
    }
}

/// The result of a call to the store in memory, which never waits.
pub(super) fn at_once<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("a store in memory answers at once")
}
