//! `tokens`: counts the tokens of files.

use std::collections::BTreeMap;

use agent_memory::tokens::{estimator, estimator_names};
use serde::Serialize;

use crate::app::App;
use crate::args::Tokens;
use crate::error::unreadable;
use crate::output::{number, table};

#[derive(Debug, Serialize)]
struct TokenCounts {
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
        return Ok(app.out.json(&TokenCounts { files })?);
    }
    // Each file is a column, because there are usually more estimators than files.
    let column = |name: &str, of: &dyn Fn(&Counted) -> String| {
        std::iter::once(name.to_owned())
            .chain(files.iter().map(of))
            .collect::<Vec<String>>()
    };
    let mut rows = vec![
        column("file", &|counted| counted.file.clone()),
        column("bytes", &|counted| number(counted.bytes as u64)),
    ];
    for name in estimator_names() {
        rows.push(column(name, &|counted| {
            number(counted.estimates.get(name).copied().unwrap_or_default())
        }));
    }
    Ok(app.out.text(&table(&rows))?)
}
