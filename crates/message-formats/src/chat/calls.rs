//! Calls without ids, and the results that name them by their tool.

/// The calls so far; a result without an id answers them by their name.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Number of calls without an id.
    count: u64,
    /// Names and ids of those that have no result, oldest first.
    open: Vec<(String, String)>,
}

impl Calls {
    /// Opens a call, and returns its id, which is made if it has none.
    pub(super) fn call(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.unwrap_or_else(|| {
            self.count += 1;
            format!("function-{}", self.count)
        });
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// Closes the call with this id.
    pub(super) fn close(&mut self, id: &str) {
        if let Some(at) = self.open.iter().position(|(_, open)| open == id) {
            self.open.remove(at);
        }
    }

    /// Returns the id of the oldest open call of this name, and closes the call.
    pub(super) fn answer_open(&mut self, name: &str) -> Option<String> {
        let at = self.open.iter().position(|(open, _)| open == name)?;
        Some(self.open.remove(at).1)
    }

    /// Closes the call that a result names by this id. Without one returns the id as [`answer_open`](Self::answer_open)
    /// does; an id made from the name if no call is open.
    pub(super) fn answer(&mut self, id: Option<String>, name: &str) -> String {
        match id {
            Some(id) => {
                self.close(&id);
                id
            }
            None => self
                .answer_open(name)
                .unwrap_or_else(|| format!("function-{name}")),
        }
    }
}
