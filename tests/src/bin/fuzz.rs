//! `fuzz TARGET --seconds N --first-seed S`: gives the product bad input, each made from a seed, and says how many hold.
//!
//! The inputs run in a child process, so that one which takes the process down (an exhausted stack), its memory or its
//! time is told by its seed as well.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "test support: it may panic, print, and read the clock"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clap::Parser;
use clap::builder::PossibleValuesParser;
use deltaonce_tests::fuzz::{self, Target};

/// The most time of a processor that one input may take. Inputs take milliseconds.
const MOST_WORK: Duration = Duration::from_secs(20);
/// The longest that one input may take, at work or not, on however busy a machine.
const LONGEST: Duration = Duration::from_secs(600);
/// The most memory that the inputs may take together, as the process has it resident.
const MOST_MEMORY: u64 = 1 << 30;
/// Failures after which no more are looked for.
const MOST_FAILURES: usize = 20;

/// Give the product bad input, made from seeds, and see that it holds
#[derive(Debug, Parser)]
struct Arguments {
    /// What is fuzzed
    #[arg(value_parser = PossibleValuesParser::new(Target::ALL.map(Target::name)))]
    target: String,
    /// How long; seeds count up from the first one
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many inputs at most
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// The seed of the first input
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Print each input as soon as it is made
    #[arg(long)]
    aloud: bool,
    /// Run the inputs in this process, and tell of each on standard output
    #[arg(long, hide = true)]
    child: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let target =
        Target::ALL.into_iter().find(|target| target.name() == arguments.target).expect("clap knows the names");
    if arguments.child { run(target, &arguments) } else { watch(&arguments) }
}

/// Runs inputs in this process: a line `seed N` before each, `failed TEXT` after one that does not hold.
fn run(target: Target, arguments: &Arguments) -> ExitCode {
    fuzz::record_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    runtime.block_on(fuzz::prepare(target));
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    for seed in (arguments.first_seed..).take(usize::try_from(arguments.cases).unwrap_or(usize::MAX)) {
        if Instant::now() > end {
            break;
        }
        tell(&format!("seed {seed}"));
        // In a task, as a service runs its loads: on a thread whose stack is not the main one.
        let task = runtime.spawn(fuzz::run(target, seed, arguments.aloud));
        if let Err(failure) = runtime.block_on(task).expect("what panics is caught") {
            let text = [failure.what].into_iter().chain(failure.input).collect::<Vec<_>>().join("\n");
            tell(&format!("failed {}", serde_json::Value::from(text)));
        }
    }
    tell("done");
    ExitCode::SUCCESS
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
}

#[derive(Debug, Default)]
struct Tally {
    inputs: u64,
    failures: usize,
    most_memory: u64,
    /// The most time of a processor that one input took, and its seed.
    slowest: (Duration, u64),
}

/// How a child came to its end.
enum Ended {
    /// All its inputs ran.
    Done,
    /// It did not outlive the input of this seed.
    At(u64, String),
}

/// Runs inputs in children until the time or the inputs are used up.
fn watch(arguments: &Arguments) -> ExitCode {
    let begin = Instant::now();
    let mut tally = Tally::default();
    let mut next = arguments.first_seed;
    loop {
        let left = arguments.seconds.saturating_sub(begin.elapsed().as_secs());
        let cases = arguments.cases.saturating_sub(tally.inputs);
        match child(arguments, next, left, cases, &mut tally) {
            Ended::Done => break,
            Ended::At(seed, why) => {
                report(arguments, seed, &why);
                tally.failures += 1;
                next = seed + 1;
            }
        }
        if tally.failures >= MOST_FAILURES || left == 0 || cases == 0 {
            break;
        }
    }
    println!(
        "{}: seeds {} to {}, {} s, at most {} MiB resident, the slowest input computed for {} ms (seed {})",
        arguments.target,
        arguments.first_seed,
        arguments.first_seed + tally.inputs.saturating_sub(1),
        begin.elapsed().as_secs(),
        tally.most_memory >> 20,
        tally.slowest.0.as_millis(),
        tally.slowest.1
    );
    println!("{} of {} inputs hold", tally.inputs.saturating_sub(tally.failures as u64), tally.inputs);
    if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(arguments: &Arguments, seed: u64, why: &str) {
    println!("seed {seed} does not hold: {why}");
    println!(
        "  again: cargo run -p deltaonce-tests --bin fuzz -- {} --first-seed {seed} --cases 1 --aloud\n",
        arguments.target
    );
}

/// Runs one child, and counts what it tells.
fn child(arguments: &Arguments, first_seed: u64, seconds: u64, cases: u64, tally: &mut Tally) -> Ended {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args([&arguments.target, "--child", "--seconds", &seconds.to_string(), "--cases", &cases.to_string()]);
    command.args(["--first-seed", &first_seed.to_string()]);
    if arguments.aloud {
        command.arg("--aloud");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("this program starts");
    let lines = lines(&mut child);
    let (mut seed, mut since, mut worked) = (None, Instant::now(), Duration::ZERO);
    let why = loop {
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => match (line.split_once(' '), seed) {
                (Some(("seed", number)), before) => {
                    let work = worked_by(&child);
                    if let Some(before) = before
                        && work.saturating_sub(worked) > tally.slowest.0
                    {
                        tally.slowest = (work.saturating_sub(worked), before);
                    }
                    (seed, since, worked) = (number.parse().ok(), Instant::now(), work);
                    tally.inputs += 1;
                }
                (Some(("failed", text)), Some(seed)) => {
                    report(arguments, seed, &serde_json::from_str::<String>(text).expect("the child tells it so"));
                    tally.failures += 1;
                    if tally.failures >= MOST_FAILURES {
                        child.kill().and_then(|()| child.wait()).expect("a child can be stopped");
                        return Ended::Done;
                    }
                }
                _ => {
                    child.wait().expect("the child ends");
                    return Ended::Done;
                }
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().expect("the child ended");
                break format!("it took the process down: {status}");
            }
        }
        let memory = resident(&child);
        tally.most_memory = tally.most_memory.max(memory);
        let why = if memory > MOST_MEMORY {
            format!("{} MiB are resident", memory >> 20)
        } else if seed.is_some() && worked_by(&child).saturating_sub(worked) > MOST_WORK {
            format!("it has computed for more than {} s", MOST_WORK.as_secs())
        } else if since.elapsed() > LONGEST {
            format!("it runs for more than {} s", LONGEST.as_secs())
        } else {
            continue;
        };
        child.kill().and_then(|()| child.wait()).expect("a child can be stopped");
        break why;
    };
    Ended::At(seed.unwrap_or(first_seed), why)
}

fn lines(child: &mut Child) -> Receiver<String> {
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Bytes that a child has resident.
fn resident(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    kibibytes.unwrap_or(0_u64) << 10
}

/// The time of processors that a child has used.
fn worked_by(child: &Child) -> Duration {
    /// The unit of `/proc/PID/stat`, which is the same on every Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // After the name, which may hold anything, come the state and, as the 12th and 13th, the times.
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = numbers.skip(11).take(2).filter_map(|number| number.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}
