//! The project of a session: the folder in which its agent works.

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

/// A project: a folder, with or without the folders in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    /// The folder, by all of its names. `None` for a project of all sessions.
    folders: Option<Vec<PathBuf>>,
    with_inner: bool,
}

impl Project {
    /// Returns the project in a named folder, with all folders in it.
    pub(crate) fn named(folder: &Path) -> Self {
        Self::new(folder, true)
    }

    /// Returns the project of a folder: the repository that it is in, or the folder alone. A repository that is the
    /// user's home does not count.
    pub(crate) fn around(folder: &Path, home: Option<&Path>) -> Self {
        // The home may be a link.
        let place = |folder: &Path| folder.canonicalize().ok();
        let place_of_home = home.and_then(place);
        let is_home = |above: &Path| {
            Some(above) == home || place_of_home.is_some() && place(above) == place_of_home
        };
        let repository = folder
            .ancestors()
            .take_while(|above| !is_home(above))
            .find(|above| above.join(".git").exists());
        match repository {
            Some(repository) => Self::new(repository, true),
            None => Self::new(folder, false),
        }
    }

    /// Returns the project of the working folder.
    pub(crate) fn current() -> std::io::Result<Self> {
        let folder = std::env::current_dir()?;
        Ok(Self::around(&folder, std::env::home_dir().as_deref()))
    }

    /// Returns a project of all sessions, also of those without a folder.
    pub(crate) fn everything() -> Self {
        Self {
            folders: None,
            with_inner: true,
        }
    }

    fn new(folder: &Path, with_inner: bool) -> Self {
        let mut folders: Vec<PathBuf> = std::path::absolute(folder).into_iter().collect();
        // An agent may name the folder by a link, or by the link's target.
        folders.extend(folder.canonicalize().ok());
        folders.dedup();
        Self {
            folders: Some(folders),
            with_inner,
        }
    }

    /// Returns whether a session's folder is in the project.
    pub(crate) fn contains(&self, folder: &Path) -> bool {
        let is_plain = !folder.components().any(|part| part == Component::ParentDir);
        let is_in = |own: &PathBuf| match self.with_inner {
            true => folder.starts_with(own),
            false => folder == own,
        };
        is_plain && self.folders.iter().flatten().any(is_in)
    }

    /// Opens the sessions of the project, the one in use last first. Archived ones are left out, and with them the notes.
    #[cfg(feature = "mcp")]
    pub(crate) async fn open_sessions(&self, memory: &Memory) -> anyhow::Result<Vec<Session>> {
        let mut found =
            read_conversations(&**memory.store(), &ConversationFilter::default()).await?;
        found.retain(|one| self.has(one));
        found.sort_by_key(|one| std::cmp::Reverse((one.updated_at, one.id)));
        let mut sessions = Vec::with_capacity(found.len());
        for one in found {
            sessions.push(memory.get_session(one.key).await?);
        }
        Ok(sessions)
    }

    /// Returns whether a session belongs to the project.
    pub(crate) fn has(&self, session: &Conversation) -> bool {
        self.folders.is_none() || folder(session).is_some_and(|folder| self.contains(&folder))
    }

    /// Returns the folder of the project, by its real path if it is there. `None` for a project of all sessions.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folders.as_ref()?.last().map(PathBuf::as_path)
    }
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
        assert!(Project::named(&root.join("plain")).contains(&root.join("plain/inner")));
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
}
