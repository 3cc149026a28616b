//! Finds the files that a shell command changes, if its words name them.

use memory_model::conventions::FileAccess;

/// Words that can come before the name of a program.
const BEFORE: [&str; 12] = [
    "!", "{", "command", "do", "else", "env", "if", "nohup", "sudo", "then", "time", "while",
];
/// Limit on the length of a file's path, in bytes.
const PATH_BYTES: usize = 300;

/// Returns the files that a command edits in place with `sed`, moves with `mv`, or writes with `cp` or `tee`.
pub(super) fn changed_files(command: &str) -> Vec<FileAccess> {
    let mut files = Vec::new();
    for words in commands(command) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_before = |word: &&&str| BEFORE.contains(*word) || word.contains('=');
        let before = words.iter().take_while(is_before).count();
        let (program, words) = match words.get(before..).unwrap_or_default() {
            ["git", "mv", words @ ..] | ["git", "-C", _, "mv", words @ ..] => ("mv", words),
            // The command runs in another shell.
            ["bash" | "sh" | "zsh", "-c" | "-lc", line] | [line] if line.contains(' ') => {
                files.extend(changed_files(line));
                continue;
            }
            [program, words @ ..] => (program.rsplit('/').next().unwrap_or(program), words),
            [] => continue,
        };
        let mut paths = match program {
            "sed" => edited(words),
            "mv" | "cp" | "tee" => operands(words),
            _ => continue,
        };
        if program == "cp" {
            paths.drain(..paths.len().saturating_sub(1));
        }
        // The shell replaces variables, and a folder is no file.
        paths.retain(|path| {
            path.len() < PATH_BYTES && !path.contains(['$', '`', '\n']) && !path.ends_with('/')
        });
        files.extend(paths.into_iter().map(|path| FileAccess {
            path: path.to_owned(),
            changed: true,
        }));
    }
    files
}

/// Returns the words that are no flags.
fn operands<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let is_operand = |word: &&&str| !word.starts_with('-');
    words.iter().filter(is_operand).copied().collect()
}

/// Returns the files that `sed` edits in place.
fn edited<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let (mut in_place, mut has_script) = (false, false);
    let mut paths = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(flag), _) => flag,
            // Other flags can come before these. `i` is followed by the suffix of a backup's name, `e` and `f` by the
            // script.
            (None, Some(flags)) => flags.trim_start_matches(|c| !['i', 'e', 'f'].contains(&c)),
            (None, None) => {
                paths.push(*word);
                continue;
            }
        };
        in_place |= flag.starts_with('i');
        let is_script = flag.starts_with(['e', 'f']) && flag != "follow-symlinks";
        has_script |= is_script;
        if is_script && ["e", "f", "expression", "file"].contains(&flag) {
            words.next();
        }
    }
    if !has_script {
        paths.drain(..paths.len().min(1));
    }
    paths.retain(|_| in_place);
    paths
}

/// Returns the words of each command in a text. Quotes, targets of redirections and here-documents are left out.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut is_target) = (String::new(), None, false);
    let text = without_documents(text);
    let mut chars = text.chars().chain(['\n']).peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(next) => {
                    if quote.is_some() && !['"', '\\', '$', '`'].contains(&next) {
                        word.push(c);
                    }
                    word.push(next);
                }
            },
            (None, '<' | '>') => {
                // The number before it is the number of a stream.
                if !word.bytes().all(|digit| digit.is_ascii_digit()) {
                    push(&mut commands, &mut word, is_target);
                }
                word.clear();
                is_target = true;
                chars.next_if(|next| ['&', '>', '|'].contains(next));
            }
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')') => {
                if !word.is_empty() {
                    push(&mut commands, &mut word, is_target);
                    is_target = false;
                }
                if !matches!(c, ' ' | '\t') {
                    commands.push(Vec::new());
                    is_target = false;
                }
            }
            (_, c) => word.push(c),
        }
    }
    commands
}

/// Adds a word to the last command, unless it is the target of a redirection.
fn push(commands: &mut [Vec<String>], word: &mut String, is_target: bool) {
    let word = std::mem::take(word);
    if let Some(words) = commands.last_mut().filter(|_| !is_target) {
        words.push(word);
    }
}

/// Returns a text without the lines of its here-documents.
fn without_documents(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some((_, end)) = line.split_once("<<") else {
            continue;
        };
        let end = end.trim_start_matches(['-', ' ', '\'', '"']);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = end.split(|c| !is_name(c)).next().unwrap_or(end);
        while !end.is_empty() && lines.next().is_some_and(|line| line.trim() != end) {}
    }
    out
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
            ("sed -i.bak -e s/a/b.c/ -ne s/d/e.f/ a.rs", vec!["a.rs"]),
            ("sed -i --expression=s/a/b.c/ -- a.rs", vec!["a.rs"]),
            ("sed -i --expression s/a/b.c/ a.rs", vec!["a.rs"]),
            ("sed -i 's/a/b/' a.rs 2>/dev/null", vec!["a.rs"]),
            ("sed -i 's/<a>/<b>/' a.rs > log.txt 2>&1", vec!["a.rs"]),
            ("sed -i \\\n  's/\\.a/b/' \\\n  a.rs", vec!["a.rs"]),
            ("sed -i --follow-symlinks s/a/b.c/ a.rs", vec!["a.rs"]),
            ("sed -n 1,20p a.rs", vec![]),
            ("sed -e s/i/j/ a.rs", vec![]),
            ("git mv -f a.rs lib/b.rs", vec!["a.rs", "lib/b.rs"]),
            ("git -C /srv mv a.rs b.rs", vec!["a.rs", "b.rs"]),
            ("if sudo /bin/mv -f a b; then echo c.rs; fi", vec!["a", "b"]),
            (
                "(mv a.rs \"$to/b.rs\" && mv c.rs lib/)",
                vec!["a.rs", "c.rs"],
            ),
            ("A=1 cp -r a.rs b.rs", vec!["b.rs"]),
            ("make | tee -a out/log.txt 2> err.txt", vec!["out/log.txt"]),
            ("bash -lc \"sed -i 's/a b/c/' a.rs\"", vec!["a.rs"]),
            (
                "tee run.sh <<'EOF'\nmv a.rs b.rs\nEOF\nmv c.rs d.rs",
                vec!["run.sh", "c.rs", "d.rs"],
            ),
            ("grep -n mv x.rs", vec![]),
            ("echo mv a.rs b.rs > c.rs", vec![]),
            ("grep -i x a.rs", vec![]),
            ("", vec![]),
        ] {
            let found = changed_files(command);
            let found: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(found, files, "{command}");
        }
    }
}
