//! Tests of the rules: a good request, and one edit of it for each rule.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::finding::{Finding, Rule};
use super::shape::RULES as SHAPE_RULES;

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

    /// Every rule of the lists fired, and no other; and no value of the good request can become a number, which no field
    /// is, unless its pointer holds one of `data`.
    pub(super) fn finish(self, rules: &[Rule], data: &[&str]) {
        let listed = rules.iter().chain(SHAPE_RULES).map(|rule| rule.name);
        assert_eq!(self.fired, listed.collect());
        let mut pointers = Vec::new();
        pointers_of("", &self.good, &mut pointers);
        for pointer in pointers {
            for value in [json!(null), json!([]), json!({}), json!(""), json!(1)] {
                let mut request = self.good.clone();
                if let Some(place) = request.pointer_mut(&pointer) {
                    *place = value.clone();
                }
                // Whatever it holds, it can be judged.
                let findings = (self.judge)(&request);
                let free = data.iter().any(|data| pointer.contains(data));
                let holds = !findings.is_empty() || free || value != json!(1);
                assert!(holds, "a number at {pointer} is accepted");
            }
        }
    }
}

fn pointers_of(pointer: &str, value: &Value, pointers: &mut Vec<String>) {
    pointers.push(pointer.to_owned());
    match value {
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                pointers_of(&format!("{pointer}/{at}"), item, pointers);
            }
        }
        Value::Object(object) => {
            for (name, item) in object {
                pointers_of(&format!("{pointer}/{name}"), item, pointers);
            }
        }
        _ => {}
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
