//! The reference of the command line: all help texts in one snapshot.

use std::fmt::Write as _;

use crate::support::Home;

#[test]
fn help_of_every_command() {
    let home = Home::new();
    let mut all = home.ok(&["--help"]).out;
    let commands: Vec<String> = all
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|command| command != "help")
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in &commands {
        let help = home.ok(&[command, "--help"]).out;
        write!(all, "\n===== {command} =====\n\n{help}").unwrap();
    }
    insta::assert_snapshot!("help", all);
}
