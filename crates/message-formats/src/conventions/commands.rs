//! Files that a shell command changes, where its words say so.

use memory_model::conventions::{FileAccess, is_path};

/// Returns the files that a command edits in place with `sed`, or moves with `mv`.
pub(super) fn changed_files(command: &str) -> Vec<FileAccess> {
    let mut paths: Vec<String> = Vec::new();
    for words in commands(command) {
        let program = words.iter().position(|word| word == "sed" || word == "mv");
        let Some((program, words)) = program.and_then(|at| words.get(at..)?.split_first()) else {
            continue;
        };
        let (flags, mut operands): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|word| word.starts_with('-'));
        if program == "sed" {
            let is_short =
                |flag: &&&String, letter| !flag.starts_with("--") && flag.contains(letter);
            let in_place = |flag: &&&String| flag.starts_with("--in-place") || is_short(flag, 'i');
            if !flags.iter().any(|flag| in_place(&flag)) {
                continue;
            }
            // The script, which is also the first word without a dash behind `-e`.
            operands.drain(..operands.len().min(1));
        }
        paths.extend(operands.into_iter().cloned());
    }
    paths.retain(|path| is_path(path));
    let file = |path| FileAccess {
        path,
        changed: true,
    };
    paths.into_iter().map(file).collect()
}

/// The words of each command of a line, without their quotes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|') => {
                if !word.is_empty()
                    && let Some(words) = commands.last_mut()
                {
                    words.push(std::mem::take(&mut word));
                }
                if !matches!(c, ' ' | '\t') {
                    commands.push(Vec::new());
                }
            }
            (_, c) => word.push(c),
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_the_files_that_it_changes() {
        for (command, files) in [
            ("sed -i s/a/b/ six.cfg", vec!["six.cfg"]),
            (
                "cd /srv; sed -Ei.bak -e 's/a b;/c/g' \"a.rs\" src/b.rs | cat",
                vec!["a.rs", "src/b.rs"],
            ),
            ("sed --in-place=.x 1d a.rs && echo c.rs", vec!["a.rs"]),
            ("sed -n 1,20p a.rs", vec![]),
            ("git mv -f a.rs lib/b.rs", vec!["a.rs", "lib/b.rs"]),
            ("grep -i x a.rs", vec![]),
            ("", vec![]),
        ] {
            let found = changed_files(command);
            let found: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(found, files, "{command}");
        }
    }
}
