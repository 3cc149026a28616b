//! The project of a session: the folder in which its agent works.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use agent_memory::store::{Conversation, ConversationPatch};
#[cfg(feature = "mcp")]
use agent_memory::{
    Memory,
    store::{ConversationFilter, read_conversations},
};
use agent_memory::{RawJson, Session};

/// Name of the folder in a session's metadata. An import writes it too.
const FOLDER: &str = "folder";

/// Beginning of the keys of the sessions with the notes of `mcp --names`.
#[cfg(feature = "mcp")]
pub(crate) const NOTES: &str = "agent-memory:notes";

/// Records the folder of a session that has no metadata yet.
pub(crate) async fn set_folder(session: &Session, folder: &Path) -> anyhow::Result<()> {
    if session.info().await?.conversation.meta.is_none() {
        let meta = serde_json::json!({FOLDER: folder.to_string_lossy()});
        let meta = Some(RawJson::from_value(&meta)?);
        let patch = ConversationPatch {
            meta,
            ..ConversationPatch::default()
        };
        session.update(&patch).await?;
    }
    Ok(())
}

/// Returns the folder of a session.
pub(crate) fn folder(conversation: &Conversation) -> Option<PathBuf> {
    let meta = conversation.meta.as_ref()?;
    let meta: serde_json::Value = serde_json::from_str(meta.as_str()).ok()?;
    Some(PathBuf::from(meta.get(FOLDER)?.as_str()?))
}

/// A project: a repository with its worktrees, a folder, or all sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    scope: Scope,
    /// The user's home, by its real path. As a repository it is no project.
    home: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    /// All sessions, also those without a folder.
    Everything,
    /// A named folder with all folders in it, and with the worktrees of its repository if it is the root of one.
    Named(PathBuf, Option<Repository>),
    Repository(Repository),
    /// A folder outside of repositories, alone.
    Folder(PathBuf),
}

impl Project {
    /// Returns the project in a named folder, with all folders in it. The root of a worktree stands for all worktrees of
    /// the repository.
    pub(crate) fn named(folder: &Path, home: Option<&Path>) -> Self {
        let (folder, home) = (place(folder), home.map(place));
        let is_root = root_around(&folder, home.as_deref()) == Some(folder.as_path());
        let repository = Repository::around(&folder, home.as_deref());
        let scope = Scope::Named(folder, repository.filter(|_| is_root));
        Self { scope, home }
    }

    /// Returns the project of a folder: the repository that it is in, with its worktrees, or the folder alone. A
    /// repository that is the user's home does not count.
    pub(crate) fn around(folder: &Path, home: Option<&Path>) -> Self {
        let (folder, home) = (place(folder), home.map(place));
        let scope = match Repository::around(&folder, home.as_deref()) {
            Some(repository) => Scope::Repository(repository),
            None => Scope::Folder(folder),
        };
        Self { scope, home }
    }

    /// Returns the project of the working folder.
    pub(crate) fn current() -> std::io::Result<Self> {
        let folder = std::env::current_dir()?;
        Ok(Self::around(&folder, std::env::home_dir().as_deref()))
    }

    /// Returns a project of all sessions, also of those without a folder.
    pub(crate) fn everything() -> Self {
        Self {
            scope: Scope::Everything,
            home: None,
        }
    }

    /// Returns whether a session's folder is in the project.
    pub(crate) fn contains(&self, folder: &Path) -> bool {
        let is_plain = !folder.components().any(|part| part == Component::ParentDir);
        if !is_plain || !folder.is_absolute() {
            return false;
        }
        let folder = place(folder);
        let is_of = |repository: &Repository| {
            Repository::around(&folder, self.home.as_deref()).as_ref() == Some(repository)
        };
        match &self.scope {
            Scope::Everything => true,
            Scope::Named(own, repository) => {
                folder.starts_with(own) || repository.as_ref().is_some_and(is_of)
            }
            Scope::Repository(repository) => is_of(repository),
            Scope::Folder(own) => folder == *own,
        }
    }

    /// Opens the sessions of the project, the one in use last first. Archived ones are left out, and with them the notes.
    #[cfg(feature = "mcp")]
    pub(crate) async fn open_sessions(&self, memory: &Memory) -> anyhow::Result<Vec<Session>> {
        let mut found =
            read_conversations(&**memory.store(), &ConversationFilter::default()).await?;
        let mut members = self.members();
        found.retain(|one| members.has(one));
        found.sort_by_key(|one| std::cmp::Reverse((one.updated_at, one.id)));
        let mut sessions = Vec::with_capacity(found.len());
        for one in found {
            sessions.push(memory.get_session(one.key).await?);
        }
        Ok(sessions)
    }

    /// Returns the sessions of the project, for one look at a list of them.
    pub(crate) fn members(&self) -> Members<'_> {
        Members {
            project: self,
            known: HashMap::new(),
        }
    }

    /// Returns the folder of the project, by its real path if it is there. A repository's is that of its first worktree,
    /// or its own if it is bare. `None` for a project of all sessions.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match &self.scope {
            Scope::Everything => None,
            Scope::Named(folder, None) | Scope::Folder(folder) => Some(folder.clone()),
            Scope::Named(_, Some(repository)) | Scope::Repository(repository) => {
                Some(repository.folder())
            }
        }
    }
}

/// The sessions of a project. Each folder is looked at once.
pub(crate) struct Members<'a> {
    project: &'a Project,
    known: HashMap<PathBuf, bool>,
}

impl Members<'_> {
    /// Returns whether a session belongs to the project.
    pub(crate) fn has(&mut self, session: &Conversation) -> bool {
        if self.project.scope == Scope::Everything {
            return true;
        }
        let Some(folder) = folder(session) else {
            return false;
        };
        let known = self.known.get(&folder).copied();
        known.unwrap_or_else(|| {
            let is_in = self.project.contains(&folder);
            self.known.insert(folder, is_in);
            is_in
        })
    }
}

/// A repository of Git, which its worktrees share. A submodule has a separate repository.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Repository {
    /// Real path of the folder with the history, or of a worktree that no history knows.
    common: PathBuf,
}

impl Repository {
    /// Returns the repository that a folder is in. `None` without one, or if it is the user's home.
    fn around(folder: &Path, home: Option<&Path>) -> Option<Self> {
        let root = root_around(folder, home)?;
        let is_of_home = |common: &PathBuf| home.is_some() && common.parent() == home;
        let common = common(root).filter(|common| !is_of_home(common));
        let common = common.unwrap_or_else(|| root.to_owned());
        Some(Self { common })
    }

    /// Returns the folder of the first worktree, or the repository itself if it is bare.
    fn folder(&self) -> PathBuf {
        match self.common.parent() {
            Some(root) if self.common.ends_with(GIT) => root.to_owned(),
            _ => worktree_in(&self.common).unwrap_or_else(|| self.common.clone()),
        }
    }
}

/// Name of the folder or file in a worktree that leads to its repository.
const GIT: &str = ".git";

/// Largest file of Git that is read, in bytes.
const MOST: u64 = 1 << 20;

/// Returns the root of the worktree or bare repository that a folder is in. Both are real paths. A folder that is gone is
/// in the one that its path leads into.
fn root_around<'a>(folder: &'a Path, home: Option<&Path>) -> Option<&'a Path> {
    let is_bare = |folder: &Path| {
        let has = |name| folder.join(name).is_dir();
        has("objects") && has("refs") && folder.join("HEAD").is_file()
    };
    let mut below_home = folder.ancestors().take_while(|above| home != Some(*above));
    below_home.find(|above| above.join(GIT).exists() || is_bare(above))
}

/// Returns the real path of the folder that the worktrees of a repository share. A link to a place outside of the root
/// counts only if that place names the root, else any folder could say that it belongs to a project. `None` if it does
/// not.
fn common(root: &Path) -> Option<PathBuf> {
    let link = root.join(GIT);
    if !link.exists() {
        return Some(root.to_owned());
    }
    let own = match link.is_file() {
        true => real(&root.join(first_line(&link)?.strip_prefix("gitdir:")?.trim()))?,
        false => real(&link)?,
    };
    if let Some(common) = first_line(&own.join("commondir")) {
        // A linked worktree: the repository has a folder for it, with the path of the link.
        let common = real(&own.join(common))?;
        let back = real(&own.join(first_line(&own.join("gitdir"))?))?;
        let is_known = own.parent() == Some(common.join("worktrees").as_path()) && back == link;
        return is_known.then_some(common);
    }
    // Else the repository may be a submodule's, or beside its worktree.
    let is_own = own.starts_with(root) || worktree_in(&own).as_deref() == Some(root);
    is_own.then_some(own)
}

/// Returns the real path of the worktree that a repository's configuration names.
fn worktree_in(repository: &Path) -> Option<PathBuf> {
    let text = small_file(&repository.join("config"))?;
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("worktree")
            .then_some(value)
    })?;
    real(&repository.join(value.trim().trim_matches('"')))
}

fn first_line(path: &Path) -> Option<String> {
    Some(small_file(path)?.lines().next()?.trim().to_owned())
}

/// Returns the text of a file of Git. `None` for a pipe or a device, which could be read without end.
fn small_file(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    let is_small = meta.is_file() && meta.len() <= MOST;
    is_small.then(|| std::fs::read_to_string(path).ok())?
}

/// Returns the path of a file or folder behind links, if it is there.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Returns the absolute path of a folder behind links. Of a folder that is gone, the links in the rest of its path.
fn place(folder: &Path) -> PathBuf {
    let Ok(folder) = std::path::absolute(folder) else {
        return folder.to_owned();
    };
    let there = folder.ancestors().find_map(|above| {
        let rest = folder.strip_prefix(above).ok()?;
        Some(real(above)?.join(rest))
    });
    let Some(there) = there else { return folder };
    // Joining nothing adds a separator.
    there.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_project_contains_its_own_folders_alone() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in [
            "app/.git",
            "app/src",
            "app-2",
            "plain/inner",
            "home/.git",
            "home/x",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let home = root.join("home");
        let around = |folder: &str| Project::around(&root.join(folder), Some(&home));
        let app = around("app/src");
        for (folder, is_in) in [
            ("app", true),
            ("app/src", true),
            ("app/gone", true),
            ("app-2", false),
            ("app/../app-2", false),
            ("app/src/../../plain", false),
            ("", false),
        ] {
            assert_eq!(app.contains(&root.join(folder)), is_in, "{folder}");
        }
        assert!(!app.contains(Path::new("app")));
        assert!(!around("plain").contains(&root.join("plain/inner")));
        let named = Project::named(&root.join("plain"), Some(&home));
        assert!(named.contains(&root.join("plain/inner")));
        // Not everything below a home is one project, by any name of the home.
        assert!(!around("home/x").contains(&home));
        let house = root.join("house");
        std::os::unix::fs::symlink(&home, &house).unwrap();
        for (home, other) in [(&home, &house), (&house, &home)] {
            assert!(!Project::around(&home.join("x"), Some(other)).contains(home));
        }
        std::os::unix::fs::symlink(root.join("app"), root.join("link")).unwrap();
        assert!(around("link").contains(&root.join("app").canonicalize().unwrap()));
    }

    /// Writes a file in a folder, which it creates.
    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Creates the files by which Git knows a repository.
    fn repository(common: &Path, config: &str) {
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(common.join(folder)).unwrap();
        }
        write(&common.join("HEAD"), "ref: refs/heads/main\n");
        write(&common.join("config"), config);
    }

    /// Creates a linked worktree as `git worktree add` does.
    fn link(common: &Path, name: &str, worktree: &Path) {
        let own = common.join("worktrees").join(name);
        let link = worktree.join(".git");
        write(&link, &format!("gitdir: {}\n", own.display()));
        write(&own.join("commondir"), "../..\n");
        write(&own.join("gitdir"), &format!("{}\n", link.display()));
    }

    /// Returns the names of the folders that the project around a folder contains.
    fn contained<'a>(root: &Path, around: &str, folders: &[&'a str]) -> Vec<&'a str> {
        let project = Project::around(&root.join(around), Some(&root.join("home")));
        let is_in = |folder: &&&str| project.contains(&root.join(folder));
        folders.iter().filter(is_in).copied().collect()
    }

    #[test]
    fn a_repository_is_one_project_with_its_worktrees() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let root = root.as_path();
        repository(&root.join("app/.git"), "");
        link(
            &root.join("app/.git"),
            "otter",
            &root.join("app/.trees/otter"),
        );
        link(&root.join("app/.git"), "heron", &root.join("app-heron"));
        std::fs::create_dir_all(root.join("app-heron/src")).unwrap();
        repository(&root.join("lib/.git"), "");
        link(&root.join("lib/.git"), "app", &root.join("app/.trees/lib"));
        // A repository that is no worktree itself.
        repository(&root.join("bare.git"), "[core]\n\tbare = true\n");
        link(&root.join("bare.git"), "main", &root.join("bare-main"));
        // A submodule, with a worktree of its own.
        let module = root.join("app/.git/modules/sub");
        repository(&module, "[core]\n\tworktree = ../../../sub\n");
        write(&root.join("app/sub/.git"), "gitdir: ../.git/modules/sub\n");
        link(&module, "side", &root.join("sub-side"));
        // A repository in a folder beside its `.git`.
        repository(&root.join("hub/.bare"), "");
        write(&root.join("hub/.git"), "gitdir: ./.bare\n");
        link(&root.join("hub/.bare"), "main", &root.join("hub/main"));
        std::fs::create_dir_all(root.join("plain/inner")).unwrap();
        let projects: [&[&str]; 6] = [
            &[
                "app",
                "app/src/gone",
                "app/.trees/gone",
                "app/.git/hooks",
                "app/.trees/otter",
                "app-heron",
                "app-heron/src",
            ],
            &["lib", "app/.trees/lib"],
            &["bare.git", "bare-main"],
            &["app/sub", "app/sub/src", "sub-side"],
            &["hub", "hub/main"],
            &["plain"],
        ];
        let mut all = projects.concat();
        all.extend(["plain/inner", "app-gone", ""]);
        for project in projects {
            for folder in project {
                assert_eq!(contained(root, folder, &all), project, "{folder}");
            }
        }
        let homes = ["app", "lib", "bare.git", "app/sub", "hub/.bare", "plain"];
        for (project, own) in projects.into_iter().zip(homes) {
            for folder in project {
                let of = Project::around(&root.join(folder), None).folder();
                assert_eq!(of, Some(root.join(own)), "{folder}");
            }
        }
        // The named root of a worktree stands for all of them, a folder in it for itself.
        let named = |folder: &str| Project::named(&root.join(folder), None);
        assert!(named("app-heron").contains(&root.join("app/src")));
        assert!(named("app").contains(&root.join("app-heron")));
        assert!(!named("app-heron/src").contains(&root.join("app-heron")));
        // A worktree that is gone is where its path leads.
        std::fs::remove_dir_all(root.join("app-heron")).unwrap();
        std::fs::remove_dir_all(root.join("app/.trees/otter")).unwrap();
        let gone = ["app", "app/.trees/otter", "app-heron", "app-heron/src"];
        assert_eq!(contained(root, "app", &gone), ["app", "app/.trees/otter"]);
    }

    #[cfg(unix)]
    #[test]
    fn no_folder_can_say_that_it_belongs_to_a_project() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let root = root.as_path();
        let app = root.join("app/.git");
        repository(&app, "");
        link(&app, "tree", &root.join("tree"));
        let to = |folder: &str| root.join(folder).join(".git");
        // The folder of another worktree, the repository itself, and a folder for a worktree outside of it.
        write(&to("copied"), &std::fs::read_to_string(to("tree")).unwrap());
        write(&to("plain"), &format!("gitdir: {}\n", app.display()));
        write(&to("made"), "gitdir: ./mine\n");
        write(
            &root.join("made/mine/commondir"),
            &format!("{}\n", app.display()),
        );
        write(&root.join("made/mine/gitdir"), "../.git\n");
        std::fs::create_dir_all(root.join("linked")).unwrap();
        std::os::unix::fs::symlink(&app, to("linked")).unwrap();
        write(&to("empty"), "");
        write(&to("nowhere"), "gitdir: /nowhere/at/all\n");
        let others = ["copied", "plain", "made", "linked", "empty", "nowhere"];
        assert_eq!(contained(root, "app", &others), Vec::<&str>::new());
        for other in others {
            assert_eq!(contained(root, other, &["app", "tree"]), Vec::<&str>::new());
            assert_eq!(contained(root, other, &others), [other]);
        }
        // A link into a project leads into it, and one out of it out of it.
        std::os::unix::fs::symlink(root.join("plain"), root.join("app/out")).unwrap();
        std::os::unix::fs::symlink(root.join("app"), root.join("in")).unwrap();
        let links = ["in", "in/gone", "in/out", "app/out", "app/out/gone"];
        assert_eq!(contained(root, "app", &links), ["in", "in/gone"]);
        assert_eq!(
            contained(root, "in", &["app", "tree", "app/out"]),
            ["app", "tree"]
        );
        // The repository of a home is no project, and neither are its worktrees.
        repository(&root.join("home/.git"), "");
        link(&root.join("home/.git"), "x", &root.join("home/x"));
        link(&root.join("home/.git"), "y", &root.join("y"));
        assert_eq!(contained(root, "y", &["home", "home/x", "y"]), ["y"]);
    }
}
