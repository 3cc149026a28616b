//! The reference of the command line: all help texts on one page.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::Home;

/// `INSTA_UPDATE=always` writes the page anew.
#[test]
fn the_reference_has_the_help_of_every_command() {
    let home = Home::new();
    let help = home.ok(&["--help"]).out;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let mut page = format!(
        "<!-- generated from the program by its tests, with INSTA_UPDATE=always -->\n\n# Reference\n\n\
         The help texts of the program and of its commands. [cli.md](cli.md) explains them.\n\n\
         ```text\n{}\n```\n",
        help.trim_end()
    );
    for command in commands {
        let help = home.ok(&[command, "--help"]).out;
        let help = help.trim_end();
        write!(page, "\n## {command}\n\n```text\n{help}\n```\n").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = stored.lines().zip(page.lines());
    let different = lines.find(|(stored, now)| stored != now);
    assert_eq!(different, None, "run the test with INSTA_UPDATE=always");
    assert!(stored == page, "run the test with INSTA_UPDATE=always");
}
