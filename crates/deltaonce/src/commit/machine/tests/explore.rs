//! Visits every state once, the nearest first, and remembers how each was reached.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::world::{Step, World};

/// The shortest way to a state that breaks a rule.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    pub(super) broken: String,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, after {} steps", self.broken, self.steps.len())?;
        self.steps.iter().try_for_each(|step| write!(f, "\n    {step:?}"))
    }
}

/// Visits all states from `start` on; gives back how many there are, or the way to the first that breaks a rule.
///
/// States are told apart by 64 bits of hash: with ten million states, the chance that any two are taken for one is
/// about one in 400,000.
pub(super) fn explore(start: World, mut visit: impl FnMut(&World)) -> Result<usize, Path> {
    let mut reached: HashMap<u64, (u64, Step)> = HashMap::new();
    let first = fingerprint(&start);
    let mut queue = VecDeque::from([(first, start)]);
    reached.insert(first, (first, Step::Start));
    while let Some((at, world)) = queue.pop_front() {
        if let Err(broken) = world.check() {
            return Err(Path { steps: way_to(&reached, at), broken });
        }
        visit(&world);
        for (step, next) in world.next() {
            let print = fingerprint(&next);
            reached.entry(print).or_insert_with(|| {
                queue.push_back((print, next));
                (at, step)
            });
        }
    }
    Ok(reached.len())
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

fn way_to(reached: &HashMap<u64, (u64, Step)>, mut at: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some((from, step)) = reached.get(&at).filter(|(from, _)| *from != at) {
        steps.push(*step);
        at = *from;
    }
    steps.reverse();
    steps
}
