//! Tests of the rules: a good request, and one edit of it for each rule.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Finding, Rule, SHAPE_RULES};

pub(super) struct Cases {
    judge: fn(&Value) -> Vec<Finding>,
    good: Value,
    fired: BTreeSet<&'static str>,
}

impl Cases {
    pub(super) fn new(judge: fn(&Value) -> Vec<Finding>, good: Value) -> Cases {
        assert_eq!(judge(&good), []);
        Cases {
            judge,
            good,
            fired: BTreeSet::new(),
        }
    }

    /// The edited request is as good.
    pub(super) fn good(&self, edit: impl FnOnce(&mut Value)) {
        let mut request = self.good.clone();
        edit(&mut request);
        assert_eq!((self.judge)(&request), [], "{request:#}");
    }

    /// The edited request breaks a rule at a path.
    pub(super) fn bad(&mut self, rule: &str, path: &str, edit: impl FnOnce(&mut Value)) {
        let mut request = self.good.clone();
        edit(&mut request);
        let findings = (self.judge)(&request);
        let hit = findings.iter().any(|f| f.rule == rule && f.path == path);
        assert!(hit, "{rule} at {path}: {findings:#?}");
        self.fired.extend(findings.iter().map(|f| f.rule));
    }

    /// Every rule of the lists fired, and no other.
    pub(super) fn finish(self, rules: &[Rule]) {
        let listed = rules.iter().chain(SHAPE_RULES).map(|rule| rule.name);
        assert_eq!(self.fired, listed.collect());
    }
}

/// Takes a field away.
pub(super) fn remove(value: &mut Value, field: &str) {
    assert!(value.as_object_mut().unwrap().remove(field).is_some());
}

/// A list of a request.
pub(super) fn list<'v>(value: &'v mut Value, pointer: &str) -> &'v mut Vec<Value> {
    value.pointer_mut(pointer).unwrap().as_array_mut().unwrap()
}
