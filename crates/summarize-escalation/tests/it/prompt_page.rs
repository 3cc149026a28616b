//! The page of the prompts has each template as it is.

use std::collections::BTreeMap;
use std::path::Path;

use summarize_escalation::prompt::PromptSet;

const FENCE: &str = "```";
const BEGIN: &str = "```text ";

/// Every template, by its name on the page.
fn templates() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, set) in [
        ("standard", PromptSet::standard()),
        ("ranked-lines", PromptSet::ranked_lines()),
        ("handoff-sections", PromptSet::handoff_sections()),
        ("checkpoint", PromptSet::checkpoint()),
        ("numbered-sections", PromptSet::numbered_sections()),
    ] {
        for (kind, template) in [
            ("leaf", Some(set.leaf)),
            ("leaf-aggressive", set.leaf_aggressive),
            ("condensed", Some(set.condensed)),
            ("trajectory", set.trajectory),
            ("update", set.update),
            ("turn-prefix", set.turn_prefix),
        ] {
            let text = template.map(|template| template.to_string());
            all.extend(text.map(|text| (format!("{name}/{kind}"), text)));
        }
        all.insert(format!("{name}/brevity"), set.brevity);
    }
    // The sets share these texts, and the set with ranks differs from the standard one by one rule.
    let standard = all.remove("standard/brevity").unwrap();
    all.retain(|name, text| !name.ends_with("/brevity") || *text != standard);
    all.retain(|name, _| !name.starts_with("ranked-lines/") || name == "ranked-lines/leaf");
    all.insert("brevity".to_owned(), standard);
    all
}

/// `INSTA_UPDATE=always` writes the texts on the page anew.
#[test]
fn the_page_has_each_prompt() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prompts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut templates = templates();
    let mut now = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        now.push_str(line);
        now.push('\n');
        let Some(name) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let text = templates.remove(name);
        let text = text.unwrap_or_else(|| panic!("no prompt or twice: {name}"));
        now.push_str(text.trim_end());
        now.push_str(&format!("\n{FENCE}\n"));
        let _ = lines.by_ref().take_while(|line| *line != FENCE).count();
    }
    let missing: Vec<&String> = templates.keys().collect();
    assert_eq!(missing, [] as [&String; 0]);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        std::fs::write(&path, &now).unwrap();
        return;
    }
    assert!(page == now, "run the test with INSTA_UPDATE=always");
}
