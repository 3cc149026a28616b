//! Command lines: their folder, their commands, and whether one repeats another.

use std::borrow::Cow;

/// Subcommands of git that join histories. The next constant has the words that continue or publish the result.
const JOINING: [&str; 5] = ["merge", "rebase", "pull", "cherry-pick", "stash"];
const JOINED: [&str; 3] = ["commit", "push", "--continue"];
/// Maximum number of files that are read from a command.
const FILES: usize = 12;
/// Beginnings of commands that only prepare others in a chain.
const ASIDE: [&str; 9] = [
    "cd ", "pushd ", "popd", "export ", "set ", "sleep ", "true", "source ", "mkdir ",
];

/// Options that make an API call change something.
const SENDING: [&str; 4] = [" -X P", " --method P", " -f ", " -F "];

/// Beginnings of commands that only look at something.
const LOOKING: &[&str] = &[
    "cat ",
    "ls",
    "grep ",
    "rg ",
    "find ",
    "head ",
    "tail ",
    "sed -n",
    "awk ",
    "tree",
    "jq ",
    "pwd",
    "which ",
    "wc ",
    "echo ",
    "nl ",
    "less ",
    "stat ",
    "file ",
    "du ",
    "git status",
    "git diff",
    "git log",
    "git show",
    "git branch",
    "git remote",
    "gh pr view",
    "gh pr diff",
    "gh pr list",
    "gh pr checks",
    "gh issue view",
    "gh issue list",
    "gh api",
    "gh run view",
    "git rev-parse",
    "git ls-files",
    "git blame",
    "git stash list",
    "git merge-base",
    "git worktree list",
    "git config --get",
    "diff ",
    "sort ",
    "test ",
    "[ ",
    "true",
    "sleep ",
    "export ",
    "cd ",
    "date",
];

/// Folder that only the shell knows: the target of `cd -`.
pub(crate) const BEFORE: &str = "-";

/// Splits off the `cd` commands at the start of a command line. Returns their folder, which is empty without a `cd`,
/// and the rest of the line.
pub(crate) fn split_cd(line: &str) -> (String, &str) {
    let mut rest = line.trim();
    if let Some(inside) = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        && !inside.contains(['(', ')'])
        && inside.trim_start().starts_with("cd ")
    {
        rest = inside.trim();
    }
    let mut folder = String::new();
    loop {
        let to = ["cd ", "pushd "]
            .iter()
            .find_map(|cd| rest.strip_prefix(cd));
        let Some((to, after)) = to.and_then(cut_folder) else {
            break;
        };
        folder = match to {
            to if folder == BEFORE && !to.starts_with(['/', '~']) => folder,
            to if folder.is_empty() || to == BEFORE => to.to_owned(),
            to => joined(&folder, to),
        };
        rest = after;
    }
    (folder, rest)
}

/// Splits a text after `cd` into the folder and the rest of the line.
fn cut_folder(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['&', ';', '|'])?;
    let (folder, rest) = text.split_at_checked(at)?;
    let rest = rest.strip_prefix("&&").or(rest.strip_prefix(';'))?;
    let folder = folder.trim();
    let folder = folder
        .strip_suffix(">/dev/null")
        .unwrap_or(folder)
        .trim_end();
    let bare = folder.trim_matches(['"', '\'']);
    let rest = rest.trim_start();
    let is_one = !bare.is_empty() && (bare.len() < folder.len() || !bare.contains(' '));
    (is_one && !rest.is_empty()).then_some((bare, rest))
}

/// Returns `path`, resolved relative to `folder`, without `.` and `..`.
pub(crate) fn joined(folder: &str, path: &str) -> String {
    if path.starts_with(['/', '~']) || folder.is_empty() {
        return path.to_owned();
    }
    let mut names: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    for name in path.split('/') {
        match name {
            "." | "" => {}
            ".." if names.len() > 1
                || names
                    .first()
                    .is_some_and(|name| !name.is_empty() && *name != "..") =>
            {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    names.join("/")
}

/// Returns the separators between the commands of a line, outside of quotes, with their byte offsets.
fn marks(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut quote = None;
    let mut skip = 0;
    line.char_indices().filter_map(move |(at, c)| {
        if at < skip {
            return None;
        }
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '\\' => skip = at + 2,
            None if matches!(c, ';' | '\n' | '|' | '&') => {
                let rest = line.get(at..).unwrap_or("");
                let mark = ["&&", "||", ";", "\n", "|"]
                    .into_iter()
                    .find(|mark| rest.starts_with(*mark))?;
                skip = at + mark.len();
                return Some((at, line.get(at..skip)?));
            }
            None => {}
        }
        None
    })
}

/// Returns the commands of a chain, without pipes and redirections of their output.
pub(crate) fn parts(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut piped) = (0, None);
    for (at, mark) in marks(line) {
        if mark == "|" {
            piped = piped.or(Some(at));
            continue;
        }
        parts.extend(line.get(start..piped.unwrap_or(at)));
        (start, piped) = (at + mark.len(), None);
    }
    parts.extend(line.get(start..piped.unwrap_or(line.len())));
    let parts = parts.into_iter().map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Options of `grep` and `rg` that take the next word as their value.
const TAKES_VALUE: [&str; 8] = ["-A", "-B", "-C", "-m", "-g", "-t", "-T", "-f"];

/// Returns the patterns of the searches in a command line.
pub(crate) fn patterns(line: &str) -> impl Iterator<Item = &str> {
    parts(command(line)).into_iter().filter_map(|part| {
        let rest = ["grep ", "rg ", "git grep "]
            .iter()
            .find_map(|name| part.strip_prefix(name));
        let mut rest = rest?.trim_start();
        while rest.starts_with('-') {
            let (option, after) = rest.split_once(' ')?;
            let takes_value = TAKES_VALUE.contains(&option);
            rest = match takes_value {
                true => after.trim_start().split_once(' ')?.1,
                false => after,
            };
            rest = rest.trim_start();
        }
        let end = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                rest = rest.get(1..)?;
                rest.find(quote)?
            }
            _ => rest.find(' ').unwrap_or(rest.len()),
        };
        rest.get(..end).filter(|pattern| !pattern.is_empty())
    })
}

/// Returns the files that a command names: words with a folder and an extension.
pub(crate) fn files(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split(|c: char| {
        c.is_whitespace() || matches!(c, '\'' | '"' | '=' | '(' | ')' | ';' | ',' | '`')
    });
    words.filter(|word| is_file(word)).take(FILES)
}

fn is_file(word: &str) -> bool {
    let word = word.strip_prefix("./").unwrap_or(word);
    let Some((folder, name)) = word.rsplit_once('/') else {
        return false;
    };
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '@' | '~' | '+');
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let extension = extension.map_or("", |(_, extension)| extension);
    !folder.is_empty()
        && word
            .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '~' | '@' | '_'))
        && word.chars().all(plain)
        // A range of revisions, such as `a..b`, is no file.
        && !word.trim_start_matches("../").contains("..")
        && !["/dev/", "/tmp/"]
            .iter()
            .any(|folder| word.starts_with(folder))
        && (1..=6).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns a command line without filters and redirections of its output.
pub(crate) fn without_filters(line: &str) -> &str {
    let mut line = line.trim_end();
    // Byte offset of the filters after the last command.
    let mut filters: Option<usize> = None;
    for (at, mark) in marks(line) {
        let is_pipe = mark == "|";
        let filter = line.get(at + mark.len()..).unwrap_or("").trim_start();
        filters = match filters {
            _ if !is_pipe || !is_filter(filter) => None,
            None => Some(at),
            first => first,
        };
    }
    line = line
        .get(..filters.unwrap_or(line.len()))
        .unwrap_or(line)
        .trim_end();
    for end in ["2>&1", "2>/dev/null", ">/dev/null", "> /dev/null"] {
        line = line.strip_suffix(end).unwrap_or(line).trim_end();
    }
    line
}

fn is_filter(part: &str) -> bool {
    let program = part.split(' ').next().unwrap_or("");
    [
        "tail", "head", "grep", "wc", "sort", "uniq", "cat", "less", "rg", "tr", "cut",
    ]
    .contains(&program)
}

/// Returns whether a command writes its output to a file.
pub(crate) fn writes(part: &str) -> bool {
    let mut before = ' ';
    let mut quote = None;
    for (at, c) in part.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '>' && !matches!(before, '2' | '&' | '-' | '=' | '<' | '>') => {
                let rest = part
                    .get(at + 1..)
                    .unwrap_or("")
                    .trim_start_matches('>')
                    .trim_start();
                if !rest.starts_with("/dev/null") && !rest.starts_with('&') && !rest.is_empty() {
                    return true;
                }
            }
            None => {}
        }
        before = c;
    }
    false
}

/// Returns a command line without the `cd` at its start.
pub(crate) fn command(line: &str) -> &str {
    split_cd(line).1
}

/// Returns a git command without the option for its folder.
pub(crate) fn anywhere(command: &str) -> Cow<'_, str> {
    let told = command.strip_prefix("git -C ");
    match told.and_then(|after| after.split_once(' ')) {
        Some((_, after)) => Cow::Owned(format!("git {after}")),
        None => Cow::Borrowed(command),
    }
}

/// Returns whether a command line only looks at something, apart from a `cd` at its start.
pub(crate) fn is_look(line: &str) -> bool {
    let command = command(line);
    looks(command) && parts(command).into_iter().all(looks)
}

/// Returns whether a command only looks at something.
fn looks(part: &str) -> bool {
    let part = anywhere(part);
    let sends = || part.starts_with("gh api") && SENDING.iter().any(|mark| part.contains(mark));
    LOOKING.iter().any(|start| part.starts_with(start)) && !writes(&part) && !sends()
}

/// Effect of a command line: its folder, and the program and targets of each command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Does {
    folder: String,
    parts: Vec<Vec<String>>,
}

impl Does {
    /// Parses a command line.
    pub(crate) fn of(line: &str) -> Self {
        let (folder, rest) = split_cd(line);
        let acts =
            |part: &&str| !ASIDE.iter().any(|aside| part.starts_with(aside)) && !is_look(part);
        let all = parts(rest);
        let mut acting: Vec<&str> = all.iter().copied().filter(acts).collect();
        if acting.is_empty() {
            acting = all;
        }
        let parts = acting
            .into_iter()
            .map(words)
            .filter(|words| !words.is_empty());
        Self {
            folder,
            parts: parts.collect(),
        }
    }

    /// Returns the programs of the command line. Command lines that may do the same are found by them.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
        self.parts
            .iter()
            .filter_map(|words| Some(words.first()?.as_str()))
    }

    /// Returns whether a successful run of this command line resolves the failure of another. It must run all commands
    /// of the other, with the same targets or more, in the same folder or in one that contains it. If all commands of
    /// the other are git commands, the last one is enough. An unknown folder counts as the same.
    pub(crate) fn makes_good(&self, failed: &Self) -> bool {
        let is_known = |folder: &str| !folder.is_empty() && folder != BEFORE;
        let same_folder = !is_known(&self.folder)
            || !is_known(&failed.folder)
            || covers(&self.folder, &failed.folder);
        // In a chain of git commands, only the last command is the goal.
        let is_git = |part: &Vec<String>| part.first().is_some_and(|program| program == "git");
        let wanted = match failed.parts.iter().all(is_git) {
            true => failed.parts.len().saturating_sub(1),
            false => 0,
        };
        let mut wanted = failed.parts.iter().skip(wanted);
        same_folder
            && !failed.parts.is_empty()
            && wanted.all(|part| self.parts.iter().any(|own| does_all(own, part)))
    }
}

/// Programs that run the scripts of a package.
const RUNNERS: [&str; 5] = ["bun", "deno", "npm", "pnpm", "yarn"];

/// Returns the words of a command, without options, quoted texts and assignments of variables.
fn words(part: &str) -> Vec<String> {
    let part = anywhere(part);
    let mut words = Vec::new();
    let mut quoted = None;
    for word in part.split_whitespace() {
        if let Some(open) = quoted {
            if word.ends_with(open) {
                quoted = None;
            }
            continue;
        }
        let open = word.chars().next().filter(|c| matches!(c, '"' | '\''));
        if let Some(open) = open {
            if word.len() < 2 || !word.ends_with(open) {
                quoted = Some(open);
            }
            continue;
        }
        let is_redirection = word.starts_with(['>', '<']) || word.starts_with("2>");
        let is_option = word.starts_with('-') && word != "--continue";
        if is_redirection || is_option || word.contains(['=', '$']) || word == "--" {
            continue;
        }
        words.push(word.trim_matches(['(', ')']).to_owned());
    }
    // `npm run check` and `npm check` run the same script.
    let runs = words
        .first()
        .is_some_and(|program| RUNNERS.contains(&program.as_str()));
    if runs && words.len() > 2 && words.get(1).is_some_and(|word| word == "run") {
        words.remove(1);
    }
    words
}

/// Returns whether a command does at least the same as another.
fn does_all(own: &[String], other: &[String]) -> bool {
    let (Some((program, own)), Some((other_program, other))) =
        (own.split_first(), other.split_first())
    else {
        return false;
    };
    if program != other_program {
        return false;
    }
    let is = |words: &[String], any: &[&str]| {
        words
            .first()
            .is_some_and(|word| any.contains(&word.as_str()))
    };
    if program == "git" && is(other, &JOINING) {
        let goes_on = own.iter().any(|word| JOINED.contains(&word.as_str()));
        return own.first() == other.first() || goes_on;
    }
    let Some((first, own)) = own.split_first() else {
        // Without files as arguments, a program works on all files.
        return other.iter().all(|word| word.contains(['/', '.']));
    };
    let Some((other_first, other)) = other.split_first() else {
        return first.contains(['/', '.']) && covers(first, "./");
    };
    // Each further word of this command must occur in the other, so fewer words cover more. If this command has paths,
    // they must also cover the other's paths.
    let is_path = |word: &&String| word.contains('/');
    let paths = || own.iter().filter(is_path);
    let mut others = other.iter().filter(is_path);
    covers(first, other_first)
        && own
            .iter()
            .all(|own| other.iter().any(|word| covers(own, word)))
        && (paths().next().is_none() || others.all(|word| paths().any(|own| covers(own, word))))
}

/// Returns whether a word equals another, or is a folder that contains it.
fn covers(own: &str, other: &str) -> bool {
    if own == other {
        return true;
    }
    let (own, all) = match own.strip_suffix("...") {
        Some(folder) => (folder, true),
        None => (own, own.ends_with('/')),
    };
    let plain = |path: &str| {
        path.strip_prefix("./")
            .unwrap_or(path)
            .trim_end_matches('/')
            .to_owned()
    };
    let other = other.strip_suffix("/...").unwrap_or(other);
    let (own, other) = (plain(own), plain(other));
    if own == other {
        return true;
    }
    let is_path = all || own.contains('/');
    is_path
        && (own.is_empty()
            || own == "."
            || other
                .strip_prefix(&own)
                .is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_apart_from_the_folder_in_which_it_runs() {
        for (line, folder, command) in [
            ("cd a && make", "a", "make"),
            ("cd a; make", "a", "make"),
            ("(cd a; make)", "a", "make"),
            ("(cd a && make x)", "a", "make x"),
            ("pushd a >/dev/null && make", "a", "make"),
            ("cd /x && cd b/../c && make && cd d", "/x/c", "make && cd d"),
            ("cd \"/a b\" && make", "/a b", "make"),
            ("cd a && cd - && cd b && make", BEFORE, "make"),
            ("cd - && cd /a && make", "/a", "make"),
            ("cd a", "", "cd a"),
            ("make && cd a", "", "make && cd a"),
            ("(make) && (ls)", "", "(make) && (ls)"),
        ] {
            assert_eq!(split_cd(line), (folder.to_owned(), command), "{line}");
        }
        assert_eq!(joined("../a", "../../b"), "../../b");
        assert_eq!(joined("/a/b", "../c/./d.rs"), "/a/c/d.rs");
    }

    #[test]
    fn a_chain_has_parts_without_filters() {
        assert_eq!(
            parts("a \"x && y\" | tail -5 && b; c || d 'e;f'"),
            ["a \"x && y\"", "b", "c", "d 'e;f'"]
        );
        assert_eq!(
            without_filters("make x 2>&1 | grep -E \"y|z;\" | tail -5"),
            "make x"
        );
        assert_eq!(without_filters("a | tail -5 && b"), "a | tail -5 && b");
        assert_eq!(without_filters("make | tee log"), "make | tee log");
        let named: Vec<&str> = files("git diff origin/a..HEAD -- src/a.rs \"./b/c.go\" ./x/... b.rs https://a.com/b.html 2>/dev/null s/a/b.c/ ~/d/e.ts:3").collect();
        assert_eq!(named, ["src/a.rs", "./b/c.go"]);
        assert!(writes("cat <<E > a.txt") && writes("echo x >>b"));
        assert!(
            !writes("ls 2>/dev/null") && !writes("x >/dev/null 2>&1") && !writes("grep '->' a")
        );
    }

    #[test]
    fn a_search_is_told_by_its_pattern() {
        let of = |line| patterns(line).collect::<Vec<_>>();
        assert_eq!(
            of("cd a && grep -rn \"fn main\" src | head && ls"),
            ["fn main"]
        );
        assert_eq!(of("rg -n Cursor src; make | grep x"), ["Cursor"]);
        assert_eq!(of("grep -n -A 15 'fn x' a.rs; grep -c"), ["fn x"]);
    }

    #[test]
    fn a_run_without_an_error_makes_good_what_the_same_program_failed_at() {
        let good = |later: &str, failed: &str| Does::of(later).makes_good(&Does::of(failed));
        for (later, failed) in [
            ("cargo test", "cargo test -p x"),
            ("cargo test -p x", "cargo test -p x --lib 2>&1 | tail"),
            (
                "go test ./... 2>&1 | tail -5",
                "cd /a && go test ./internal/b/...",
            ),
            ("cd /a && npm test", "npm test | head"),
            ("mise run lint && mise run test", "mise run lint 2>&1"),
            ("go test ./a", "go test ./a -run TestX"),
            ("git commit -m \"joined\"", "git fetch && git merge topic"),
            ("pytest", "pytest tests/a.py"),
            ("pytest tests/", "pytest tests/a.py"),
            ("git rebase --continue", "git rebase main"),
            ("bun run verify", "cd web && bun verify"),
        ] {
            assert!(good(later, failed), "{later}: {failed}");
        }
        for (later, failed) in [
            ("cargo test -p x", "cargo test"),
            ("cargo test -p y", "cargo test -p x"),
            ("cargo build", "cargo test"),
            ("make", "make lint"),
            ("npm run build", "npm run check"),
            ("cd /b && npm test", "cd /a && npm test"),
            ("git commit -m x", "git push"),
            ("pytest tests/b.py", "pytest tests/a.py"),
            ("mise run test", "mise run lint && mise run test"),
            ("go test ./a", "go test ./a ./b"),
        ] {
            assert!(!good(later, failed), "{later}: {failed}");
        }
    }
}
