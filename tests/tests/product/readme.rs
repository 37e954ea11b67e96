//! The README's tour is what the program says.

use std::fmt::Write;
use std::fs;

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::redact::redact;
use deltaonce_tests::root;

/// Runs every command of the README's `console` blocks, in order and in one folder, and compares what it prints with
/// what the README shows, but for times and durations. With `UPDATE_README=1` set, the README is brought up to date
/// where it differs.
#[test]
fn the_tour_is_true() {
    let file = root().join("README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let sandbox = Sandbox::default();
    std::os::unix::fs::symlink(root().join("fixtures"), sandbox.path("fixtures")).unwrap();
    let shown = played(&sandbox, &readme);
    if std::env::var_os("UPDATE_README").is_some() && shown != readme {
        fs::write(&file, shown).unwrap();
        return;
    }
    assert_eq!(readme, shown, "the README shows something else; UPDATE_README=1 brings it up to date");
}

/// The README with each command's output as it is now, or as it was where only times differ.
fn played(sandbox: &Sandbox, readme: &str) -> String {
    let (mut out, mut lines, mut inside) = (String::new(), readme.lines().peekable(), false);
    let mut commands = 0;
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        inside = if inside { line != "```" } else { line == "```console" };
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        let mut command = command.to_owned();
        while let Some(start) = command.strip_suffix('\\') {
            let next = lines.next().unwrap_or_else(|| panic!("'{line}' goes on, but the README ends"));
            writeln!(out, "{next}").unwrap();
            command = format!("{start}{}", next.trim_start());
        }
        let arguments = command
            .strip_prefix("deltaonce ")
            .unwrap_or_else(|| panic!("the tour runs only deltaonce, not: {command}"));
        let mut old = String::new();
        while let Some(shown) = lines.next_if(|next| *next != "```" && !next.starts_with("$ ")) {
            writeln!(old, "{shown}").unwrap();
        }
        let run = sandbox.run(arguments);
        let mut new = format!("{}{}", run.stdout, run.stderr);
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        // An empty line before the next command belongs to the README.
        if old.ends_with("\n\n") {
            new.push('\n');
        }
        out.push_str(if redact(&old) == redact(&new) { &old } else { &new });
        commands += 1;
    }
    assert!(commands > 0, "the README has no tour");
    out
}
