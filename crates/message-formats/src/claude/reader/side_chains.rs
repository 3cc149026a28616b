//! Puts the lines of sub-agents in side chains, and finds the calls that started these.

use memory_model::short_hash;

use super::Reader;
use super::chain::{Chain, Start};
use super::spawn_call::CALL;
use crate::claude::line::prompt;
use crate::json_lines::Line;

impl Reader {
    /// Returns the side chain that a line belongs to: the chain of its agent, the chain of the line above it in the
    /// tree, or a new chain.
    pub(super) fn chain(&mut self, line: &Line<'_>, uuid: Option<&str>, noise: bool) -> usize {
        let object = &line.object;
        let agent = object.id("agentId").or_else(|| object.id(CALL));
        let known = match (&agent, object.string("parentUuid")) {
            (Some(agent), _) => self.agents.get(agent).copied(),
            (None, Some(parent)) => self.chain_of.get(&self.names.of(&parent)).copied(),
            (None, None) => None,
        };
        let chain = match known {
            Some(chain) => chain,
            // Noise starts no conversation.
            None if noise => return 0,
            None => self.start_chain(line, agent.as_deref().or(uuid)),
        };
        if let Some(uuid) = uuid {
            self.chain_of.insert(self.names.of(uuid), chain);
        }
        if let Some(agent) = agent {
            self.agents.insert(agent, chain);
        }
        chain
    }

    fn start_chain(&mut self, line: &Line<'_>, name: Option<&str>) -> usize {
        let name = name.map_or_else(|| format!("h-{}", short_hash(line.text)), str::to_owned);
        let same = |chain: &Chain| chain.name.as_deref() == Some(name.as_str());
        if let Some(known) = self.sessions.iter().position(same) {
            return known;
        }
        let named = line.object.id(CALL);
        let call = match named.and_then(|id| self.calls.iter().rposition(|call| call.id == id)) {
            Some(call) => Some(call),
            None => self.spawning_call(prompt(&line.object).as_deref()),
        };
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            call.taken = true;
        }
        let parent = call
            .and_then(|call| self.calls.get(call))
            .map_or(0, |call| call.session);
        let Some(log) = self.sessions.first().map(|root| root.log.sibling()) else {
            return 0;
        };
        let start = Start::Alone { call };
        self.sessions
            .push(Chain::new(log, parent, Some(name), start));
        self.sessions.len() - 1
    }

    /// Returns the call that started a side chain: the call with its prompt, or else the nearest open call.
    fn spawning_call(&self, prompt: Option<&str>) -> Option<usize> {
        let free = || {
            self.calls
                .iter()
                .enumerate()
                .filter(|(_, call)| !call.taken)
        };
        free()
            .find(|(_, call)| prompt.is_some() && call.prompt.as_deref() == prompt)
            .or_else(|| free().rfind(|(_, call)| !call.answered))
            .map(|(at, _)| at)
    }
}
