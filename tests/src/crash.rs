//! What a disk may hold after the machine loses its power, told from the calls that a program made.
//!
//! Promised by POSIX, and no more than that: a file's content is on the disk once the file is synced, and a name once the
//! folder that holds it is synced. What is not synced may be there or not, one thing without the other, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::disk_calls::Call;

/// Files and folders as a program sees them, beside what of them is on the disk for sure.
#[derive(Debug, Clone)]
pub struct Disk {
    files: Vec<File>,
    folders: Vec<Folder>,
}

#[derive(Debug, Clone, Default)]
struct File {
    content: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
struct Folder {
    names: BTreeMap<String, Node>,
    synced: BTreeMap<String, Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    File(usize),
    Folder(usize),
}

const ROOT: usize = 0;

/// What becomes of content that was written and not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unsynced {
    Lost,
    Half,
    Kept,
}

/// A tree of files after a crash: paths with their content, folders without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Disk {
    /// A disk that holds what is in a folder now, all of it synced.
    #[must_use]
    pub fn holding(folder: &Path) -> Self {
        let mut disk = Self { files: Vec::new(), folders: vec![Folder::default()] };
        disk.take(ROOT, folder);
        for file in &mut disk.files {
            file.synced.clone_from(&file.content);
        }
        for folder in &mut disk.folders {
            folder.synced.clone_from(&folder.names);
        }
        disk
    }

    /// Takes over what a killed program did in its last calls, of whose end nobody could tell; none of it is synced.
    pub fn catch_up(&mut self, folder: &Path) {
        self.take(ROOT, folder);
    }

    fn take(&mut self, into: usize, folder: &Path) {
        let found: Vec<PathBuf> =
            fs::read_dir(folder).expect("a folder can be read").map(|entry| entry.expect("an entry").path()).collect();
        for path in &found {
            let known = self.folders[into].names.get(&name(path)).copied();
            let node = match known {
                Some(node) => node,
                None if path.is_dir() => self.new_folder(),
                None => self.new_file(Vec::new()),
            };
            match node {
                Node::Folder(inner) => self.take(inner, path),
                Node::File(file) => self.files[file].content = fs::read(path).expect("a file can be read"),
            }
            self.folders[into].names.insert(name(path), node);
        }
        let found: BTreeSet<String> = found.iter().map(|path| name(path)).collect();
        self.folders[into].names.retain(|name, _| found.contains(name));
    }

    fn new_file(&mut self, content: Vec<u8>) -> Node {
        self.files.push(File { content, synced: Vec::new() });
        Node::File(self.files.len() - 1)
    }

    fn new_folder(&mut self) -> Node {
        self.folders.push(Folder::default());
        Node::Folder(self.folders.len() - 1)
    }

    /// Carries out a call that succeeded.
    ///
    /// # Panics
    /// Where the call cannot be one on this disk.
    pub fn carry_out(&mut self, call: &Call) {
        match call {
            Call::Create { path } => {
                if self.find(path).is_none() {
                    let file = self.new_file(Vec::new());
                    self.enter(path, file);
                }
            }
            Call::Truncate { path } => self.file(path).content.clear(),
            Call::Write { path, at, bytes } => {
                let content = &mut self.file(path).content;
                let bytes: Vec<u8> = bytes.chars().map(|c| u8::try_from(c).expect("it is Latin-1")).collect();
                content.resize(content.len().max(at + bytes.len()), 0);
                content[*at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Call::Sync { path } => match self.find(path).expect("what is synced is there") {
                Node::File(file) => self.files[file].synced = self.files[file].content.clone(),
                Node::Folder(folder) => self.folders[folder].synced = self.folders[folder].names.clone(),
            },
            Call::Link { path, to } => {
                let node = self.find(path).expect("what is linked is there");
                self.enter(to, node);
            }
            Call::Rename { path, to } => {
                let node = self.leave(path);
                self.enter(to, node);
            }
            Call::Remove { path } => {
                self.leave(path);
            }
            Call::Mkdir { path } => {
                let folder = self.new_folder();
                self.enter(path, folder);
            }
            Call::Answer => {}
        }
    }

    fn find(&self, path: &Path) -> Option<Node> {
        path.iter().filter(|part| *part != ".").try_fold(Node::Folder(ROOT), |at, part| match at {
            Node::Folder(folder) => self.folders[folder].names.get(part.to_str()?).copied(),
            Node::File(_) => None,
        })
    }

    fn file(&mut self, path: &Path) -> &mut File {
        match self.find(path) {
            Some(Node::File(file)) => &mut self.files[file],
            other => panic!("{} is no file: {other:?}", path.display()),
        }
    }

    fn parent(&mut self, path: &Path) -> &mut Folder {
        match self.find(path.parent().unwrap_or(Path::new(""))) {
            Some(Node::Folder(folder)) => &mut self.folders[folder],
            other => panic!("{} lies in no folder: {other:?}", path.display()),
        }
    }

    fn enter(&mut self, path: &Path, node: Node) {
        self.parent(path).names.insert(name(path), node);
    }

    fn leave(&mut self, path: &Path) -> Node {
        let gone = self.parent(path).names.remove(&name(path));
        gone.unwrap_or_else(|| panic!("{} is not there", path.display()))
    }

    /// What may be found if the power goes now: all that is not synced lost, all of it kept, each name kept alone and each
    /// lost alone, and all that with contents that were not synced lost, half there and kept.
    #[must_use]
    pub fn images(&self) -> BTreeSet<Image> {
        let changes = self.unsynced_names();
        let mut kept: BTreeSet<BTreeSet<usize>> = BTreeSet::new();
        let all: BTreeSet<usize> = (0..changes.len()).collect();
        for alone in 0..changes.len() {
            kept.insert([alone].into());
            kept.insert(all.iter().copied().filter(|change| *change != alone).collect());
        }
        kept.insert(BTreeSet::new());
        kept.insert(all);
        let contents = [Unsynced::Lost, Unsynced::Half, Unsynced::Kept];
        let images = kept.iter().flat_map(|kept| {
            let kept: BTreeSet<&(usize, String)> = kept.iter().map(|change| &changes[*change]).collect();
            contents.map(|content| self.image(&kept, content))
        });
        images.collect()
    }

    /// The image in which nothing is left that was not synced.
    #[must_use]
    pub fn least(&self) -> Image {
        self.image(&BTreeSet::new(), Unsynced::Lost)
    }

    /// The names that a sync would add, take away or give to another file, by folder.
    fn unsynced_names(&self) -> Vec<(usize, String)> {
        let differs = |folder: &Folder, name: &String| folder.names.get(name) != folder.synced.get(name);
        let of_folder = |(number, folder): (usize, &Folder)| {
            let names: BTreeSet<&String> = folder.names.keys().chain(folder.synced.keys()).collect();
            let changed = names.into_iter().filter(|name| differs(folder, name));
            changed.map(|name| (number, name.clone())).collect::<Vec<_>>()
        };
        self.folders.iter().enumerate().flat_map(of_folder).collect()
    }

    fn image(&self, kept: &BTreeSet<&(usize, String)>, content: Unsynced) -> Image {
        let mut image = Image(BTreeMap::new());
        self.fill(&mut image, ROOT, Path::new(""), kept, content);
        image
    }

    fn fill(&self, image: &mut Image, number: usize, at: &Path, kept: &BTreeSet<&(usize, String)>, content: Unsynced) {
        let folder = &self.folders[number];
        let mut names = folder.synced.clone();
        for (_, name) in kept.iter().filter(|change| change.0 == number) {
            match folder.names.get(name) {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
        }
        for (name, node) in names {
            let path = at.join(name);
            match node {
                Node::File(file) => {
                    image.0.insert(path, Some(self.files[file].after(content)));
                }
                Node::Folder(inner) => {
                    image.0.insert(path.clone(), None);
                    self.fill(image, inner, &path, kept, content);
                }
            }
        }
    }
}

impl File {
    fn after(&self, unsynced: Unsynced) -> Vec<u8> {
        match unsynced {
            _ if self.content == self.synced => self.synced.clone(),
            Unsynced::Lost => self.synced.clone(),
            Unsynced::Half => self.content[..self.content.len() / 2].to_vec(),
            Unsynced::Kept => self.content.clone(),
        }
    }
}

impl Image {
    /// Writes it into a folder.
    pub fn write_to(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("a folder for the image");
        for (path, content) in &self.0 {
            let path = folder.join(path);
            match content {
                None => fs::create_dir(&path),
                Some(content) => fs::write(&path, content),
            }
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("a path has a name in UTF-8").to_owned()
}
