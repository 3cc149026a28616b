//! `tokens`: counts of files.

use std::collections::BTreeMap;

use agent_memory::{estimator, estimator_names};
use serde::Serialize;

use crate::app::App;
use crate::args::Tokens;
use crate::error::unreadable;
use crate::output::{number, table};

#[derive(Debug, Serialize)]
struct Answer {
    files: Vec<Counted>,
}

#[derive(Debug, Serialize)]
struct Counted {
    file: String,
    bytes: usize,
    estimates: BTreeMap<&'static str, u64>,
}

pub(crate) fn run(app: &mut App, args: &Tokens) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for path in &args.files {
        let file = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|error| unreadable(&file, Some(&error.to_string())))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut estimates = BTreeMap::new();
        for name in estimator_names() {
            estimates.insert(name, estimator(name)?.text(&text));
        }
        files.push(Counted {
            file,
            bytes: bytes.len(),
            estimates,
        });
    }
    if app.json {
        return Ok(app.out.json(&Answer { files })?);
    }
    let mut header = vec!["file".to_owned(), "bytes".to_owned()];
    header.extend(estimator_names().map(str::to_owned));
    let mut rows = vec![header];
    for counted in &files {
        let mut row = vec![counted.file.clone(), number(counted.bytes as u64)];
        let estimates = estimator_names().map(|name| counted.estimates.get(name));
        row.extend(estimates.map(|tokens| number(tokens.copied().unwrap_or_default())));
        rows.push(row);
    }
    Ok(app.out.text(&table(&rows))?)
}
