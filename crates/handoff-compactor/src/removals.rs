//! Files that a shell command removes.

/// Returns the paths of the files that a command line removes: the operands of `rm`, `unlink` and `git rm`. A relative
/// path gets the folder of an earlier `cd` as its prefix. Patterns and variables are ignored.
pub(crate) fn removed(command: &str) -> Vec<String> {
    let mut removed = Vec::new();
    let mut folder: Option<String> = None;
    for words in commands(command) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let operands = match words.as_slice() {
            ["cd", to] => {
                folder = Some(match folder {
                    Some(from) if !to.starts_with('/') => joined(&from, to),
                    _ => (*to).to_owned(),
                });
                continue;
            }
            ["rm" | "unlink", operands @ ..] | ["git", "rm", operands @ ..] => operands,
            _ => continue,
        };
        let named =
            |word: &&&str| !word.starts_with('-') && !word.contains(['*', '?', '$', '`', '~', '{']);
        for path in operands.iter().filter(named) {
            removed.push(match &folder {
                Some(folder) if !path.starts_with('/') => joined(folder, path),
                _ => (*path).to_owned(),
            });
        }
    }
    removed
}

fn joined(folder: &str, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// Splits a command line into simple commands. Each command is a list of its words, without quotes and redirections.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut skip = false;
    let mut chars = line.chars();
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>, skip: bool| {
        if let (Some(word), false, Some(last)) = (word.take(), skip, commands.last_mut()) {
            last.push(word);
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '&' | ';' | '|' | '\n' | '(' | ')') => {
                end(&mut word, &mut commands, skip);
                skip = false;
                commands.push(Vec::new());
            }
            (None, '>' | '<') => {
                // The number before `>`, as in `2>`, is no operand.
                word = word.filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
                end(&mut word, &mut commands, skip);
                skip = true;
            }
            (None, c) if c.is_whitespace() => {
                let ends = word.is_some();
                end(&mut word, &mut commands, skip);
                skip &= !ends;
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut commands, skip);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_rm_are_removed() {
        for (command, paths) in [
            ("rm a.txt", vec!["a.txt"]),
            ("rm -rf 'a b/' \"c\" d\\ e", vec!["a b/", "c", "d e"]),
            (
                "cd /srv/x && rm ./a b && ls c",
                vec!["/srv/x/a", "/srv/x/b"],
            ),
            ("cd /srv && cd x; git rm --cached y", vec!["/srv/x/y"]),
            ("rm *.o $TMP/x ~/y", vec![]),
            ("rm a 2>/dev/null > out.log || true", vec!["a"]),
            ("echo 'rm a' && rmdir b", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(removed(command), paths, "{command}");
        }
    }
}
