//! Compares the languages of a conversation and its summary.
//!
//! The crate `whatlang` identifies the languages, after code, names and commands are removed. If `whatlang` is not sure
//! of a language, the languages are not compared.

use std::collections::BTreeSet;

use extractive_summarizer::text::{head as first_bytes, tail as last_bytes};
use whatlang::{Lang, Script};

/// Minimum number of Latin letters from which a language is identified.
const FEWEST_LATIN: usize = 80;
/// Minimum number of letters of other scripts from which a language is identified. It is lower, because a letter of
/// these scripts carries more information.
const FEWEST_OTHER: usize = 20;
/// Number of bytes that are read at the start of a text, and again at its end.
const SAMPLE: usize = 2_000;
/// Maximum length of a word, in characters. Longer runs are ignored.
const LONGEST_WORD: usize = 30;

/// Words of a text, divided into words in Latin script and all others.
#[derive(Debug, Default)]
struct WordsByScript {
    latin: String,
    latin_letters: usize,
    other: String,
    other_letters: usize,
}

impl WordsByScript {
    fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.read(text);
        words
    }

    fn read(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let latin = is_latin(c);
            let end = rest.find(|c| c == '\n' || is_latin(c) != latin || c.is_whitespace());
            let end = end.unwrap_or(rest.len()).max(c.len_utf8());
            let (run, tail) = rest.split_at(end);
            rest = tail;
            if !latin {
                self.other_letters += run.chars().filter(|c| c.is_alphabetic()).count();
                self.other.push_str(run);
            } else if let Some(word) = word(run) {
                self.latin_letters += word.chars().count();
                self.latin.push_str(word);
                self.latin.push(' ');
            }
        }
    }

    /// Returns whether at least half of the Latin words also occur in `others`.
    fn repeats(&self, others: &Self) -> bool {
        let words = |text: &str| -> Vec<String> {
            let long = |word: &&str| word.chars().nth(2).is_some();
            let words = text.split_whitespace().filter(long);
            words.map(str::to_lowercase).collect()
        };
        let known: BTreeSet<String> = words(&others.latin).into_iter().collect();
        let own = words(&self.latin);
        let repeated = own.iter().filter(|word| known.contains(*word)).count();
        !own.is_empty() && repeated * 2 >= own.len()
    }

    /// Returns the words from which the language can be identified; `None` if they are too few.
    fn telling(&self) -> Option<&str> {
        // Names and commands are Latin in every language. Therefore a share of one sixth is enough for another script.
        if self.other_letters * 6 >= self.latin_letters && self.other_letters >= FEWEST_OTHER {
            return Some(&self.other);
        }
        self.is_latin().then_some(&self.latin)
    }

    /// Returns whether the text has enough Latin letters and hardly any others.
    fn is_latin(&self) -> bool {
        self.latin_letters >= FEWEST_LATIN && self.other_letters * 20 <= self.latin_letters
    }

    /// Returns whether the text mixes words of Latin and other scripts, so that they identify no language.
    fn is_mixed(&self) -> bool {
        self.other_letters >= FEWEST_OTHER && self.telling().is_none()
    }

    /// Returns the language of the words and its script; `None` if `whatlang` is not sure.
    fn language(&self) -> Option<(Lang, Script)> {
        let text = self.telling()?;
        let (head, tail) = (first_bytes(text, SAMPLE), last_bytes(text, SAMPLE));
        let info = match text.len() > 2 * SAMPLE {
            true => whatlang::detect(&format!("{head}\n{tail}")),
            false => whatlang::detect(text),
        }?;
        info.is_reliable().then(|| (info.lang(), info.script()))
    }
}

/// Returns whether a character occurs in words of Latin script, or in code.
fn is_latin(c: char) -> bool {
    matches!(c, '!'..='~' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{300}'..='\u{36f}' | '’')
}

/// Returns the word of prose in a run of characters; `None` for a path, a call, an identifier or an abbreviation.
fn word(run: &str) -> Option<&str> {
    let word = run.trim_matches(|c: char| !c.is_alphabetic());
    let inner = |c: char| c.is_alphabetic() || matches!(c, '\'' | '’' | '-') || is_mark(c);
    let lower = |c: char| !c.is_uppercase();
    let prose = !word.is_empty()
        && word.chars().all(inner)
        && word.chars().skip(1).all(lower)
        && word.chars().count() <= LONGEST_WORD
        && !run.contains(['/', '\\', '=', '_', '$', '`', '{', '}', '<', '>', '|']);
    prose.then_some(word)
}

/// Returns whether a character is a combining mark.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns whether a summary is in another language than the conversation, if both languages are clear, or in a script
/// that the conversation hardly uses.
///
/// The check is lenient. A summary passes if its language is the clear language of any single text of the conversation,
/// or if it is in Latin script and at least half of its words occur in the conversation.
pub(super) fn differs(said: &[&str], summary: &[&str]) -> bool {
    let mut told = WordsByScript::default();
    for text in summary {
        told.read(text);
        told.read("\n");
    }
    if told.telling().is_none() {
        return false;
    }
    let mut all = WordsByScript::default();
    for text in said {
        all.read(text);
        all.read("\n");
    }
    // Identifying languages takes most of the gate's time, so it comes last. Single texts are identified only if the
    // language of all texts together differs.
    if told.is_latin() && told.repeats(&all) {
        return false;
    }
    let Some((written, script)) = told.language() else {
        return false;
    };
    // Users who write another script often have little to say among templates and output of tools.
    let few = whatlang::detect(&all.other).map(|found| found.lang());
    if all.other_letters >= FEWEST_OTHER && few == Some(written) {
        return false;
    }
    let whole = all.language();
    let is_written = |found: Option<(Lang, Script)>| found.is_some_and(|(lang, _)| lang == written);
    if is_written(whole) {
        return false;
    }
    let mut other_script = whole.is_some_and(|(_, script)| script != Script::Latin);
    for text in said {
        let words = WordsByScript::of(text);
        let found = words.language();
        // A few words of another script amid code identify no language, but may be in the summary's language.
        if is_written(found) || (script != Script::Latin && words.is_mixed()) {
            return false;
        }
        other_script |= found.is_some_and(|(_, script)| script != Script::Latin);
    }
    if whole.is_none() {
        let letters = all.latin_letters + all.other_letters;
        let absent = all.other_letters == 0 || all.other_letters * 100 < letters;
        return script != Script::Latin && absent;
    }
    // A text with much code seems Latin, although its prose may be in the expected script.
    !(script == Script::Latin && other_script && told.other_letters >= FEWEST_OTHER)
}

/// Returns whether the Latin words of a summary should occur in its source: the summary is in English, like the code
/// and the output of most tools, or in another script, where Latin words are names, or the conversation has at least
/// twice as much text in the same language.
pub(super) fn shares_words(summary: &str, said: &[&str]) -> bool {
    let told = WordsByScript::of(summary);
    if !told.is_latin() && told.telling().is_some() {
        return true;
    }
    match told.language() {
        None => summary.is_ascii(),
        Some((Lang::Eng, _)) => true,
        Some((written, _)) => {
            let mut all = WordsByScript::default();
            for text in said {
                all.read(text);
                all.read("\n");
            }
            all.latin_letters >= 2 * told.latin_letters
                && all.language().is_some_and(|(lang, _)| lang == written)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Lang> {
        WordsByScript::of(text).language().map(|(lang, _)| lang)
    }

    #[test]
    fn a_conversation_with_much_code_may_be_in_the_script_of_its_few_words() {
        let code = "the build runs all tests and prints what failed in which crate ".repeat(5);
        let said =
            format!("計画が承認されました。実装用の準備が完了したので、テストを続けます。\n{code}");
        let other =
            "Step one reads the lessons, step two verifies the worktree of the feature, and \
                     step three chooses how the plan is carried out by the team. "
                .repeat(6);
        let summary = "計画が承認され、実装の準備が完了しました。次はテストを続けます。".repeat(3);
        assert!(!differs(&[&said, &other], &[&summary]));
        assert!(differs(&[&code, &other], &[&summary]));
    }

    #[test]
    fn unclear_languages_are_not_judged() {
        for text in [
            "",
            "ok",
            "src/lexer.rs src/parser.rs --workspace E0502 nextToken a_b $HOME x=1 f(x)",
            "ja, ok",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn code_is_left_out() {
        let words = WordsByScript::of(
            "Das ist `parse_block` in src/lexer.rs (nextToken), wirklich: l'été.",
        );
        assert_eq!(words.latin, "Das ist in wirklich l'été ");
        let words = WordsByScript::of("`next_token`を直しました。 cargo test は");
        assert_eq!(words.other.replace(' ', ""), "を直しました。は");
    }
}
