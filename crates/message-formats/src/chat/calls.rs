//! Pairs calls without ids and the results that name only the tool.

/// The calls so far. A result without an id answers a call of its tool.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Number of calls without an id.
    count: u64,
    /// Name and id of each call without a result, oldest first.
    open: Vec<(String, String)>,
}

impl Calls {
    /// Opens a call, and returns its id. A call without an id gets a made one.
    pub(super) fn call(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.unwrap_or_else(|| {
            self.count += 1;
            format!("function-{}", self.count)
        });
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// Closes the call with an id.
    pub(super) fn close(&mut self, id: &str) {
        if let Some(at) = self.open.iter().position(|(_, open)| open == id) {
            self.open.remove(at);
        }
    }

    /// Closes the oldest open call of a tool, and returns its id.
    pub(super) fn answer_open(&mut self, name: &str) -> Option<String> {
        let at = self.open.iter().position(|(open, _)| open == name)?;
        Some(self.open.remove(at).1)
    }

    /// Closes the call that a result answers, and returns its id.
    ///
    /// Without an id, the result answers the oldest open call of the tool: see [`answer_open`](Self::answer_open). If
    /// no call is open, the id is made from the tool's name.
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
