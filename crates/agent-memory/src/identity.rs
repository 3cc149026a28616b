//! The identity at the beginning of every context: a text of the application, and files that the user and the agent
//! edit.

use std::borrow::Cow;
use std::sync::Arc;

use context_assembler::render_identity;
use retrieval_tools::IdentityFiles;

/// The agent's identity, which begins every context: a text, files, or both.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    text: Option<String>,
    files: Option<IdentityFiles>,
    /// The rendered text. Not used if the identity has files, because they may change.
    rendered: Option<Arc<str>>,
}

impl Identity {
    /// Adds files, which are read for each context. Their texts follow the identity's text.
    pub fn with_files(mut self, files: IdentityFiles) -> Self {
        self.files = Some(files);
        self
    }

    /// Returns the identity's files; `None` if it has none.
    pub(crate) fn files(&self) -> Option<&IdentityFiles> {
        self.files.as_ref()
    }

    /// Returns the identity in the form that contexts show; `None` if it has no text.
    pub(crate) fn render(&self) -> Option<Arc<str>> {
        let Some(files) = &self.files else {
            return self.rendered.clone();
        };
        let texts = [
            self.text.as_deref().map(Cow::Borrowed),
            files.text().map(Cow::Owned),
        ];
        let texts: Vec<Cow<'_, str>> = texts.into_iter().flatten().collect();
        (!texts.is_empty()).then(|| render_identity(&texts.join("\n\n")).into())
    }
}

/// Creates an identity from one text.
impl From<String> for Identity {
    fn from(text: String) -> Self {
        Self {
            rendered: Some(render_identity(&text).into()),
            text: Some(text),
            files: None,
        }
    }
}

/// Creates an identity from one text.
impl From<&str> for Identity {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Creates an identity from files, without an additional text.
impl From<IdentityFiles> for Identity {
    fn from(files: IdentityFiles) -> Self {
        Self::default().with_files(files)
    }
}
