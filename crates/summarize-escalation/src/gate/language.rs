//! In which language a text is, as far as its letters and commonest words tell.

/// What a text seems to be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Japanese,
    Korean,
    Chinese,
    Cyrillic,
    Arabic,
    Hebrew,
    Devanagari,
    Thai,
    Greek,
    /// A language in Latin letters, where its commonest words tell which.
    Latin(&'static str),
}

impl Language {
    /// The scripts that it is written in, by their places in [`Letters`]; none for Latin ones.
    fn scripts(self) -> &'static [usize] {
        match self {
            Self::Japanese => &[0, 2],
            Self::Korean => &[1],
            Self::Chinese => &[2],
            Self::Cyrillic => &[3],
            Self::Arabic => &[4],
            Self::Hebrew => &[5],
            Self::Devanagari => &[6],
            Self::Thai => &[7],
            Self::Greek => &[8],
            Self::Latin(_) => &[],
        }
    }
}

/// Fewer letters than this tell nothing.
const FEWEST: usize = 40;

const COMMON: [(&str, &[&str]); 6] = [
    (
        "en",
        &[
            "the", "and", "is", "to", "of", "was", "that", "with", "for", "this", "it",
        ],
    ),
    (
        "de",
        &[
            "der", "die", "und", "das", "ist", "nicht", "mit", "ein", "wurde", "für", "zu",
        ],
    ),
    (
        "fr",
        &[
            "le", "les", "des", "est", "une", "dans", "pour", "que", "pas", "avec", "du",
        ],
    ),
    (
        "es",
        &[
            "el", "los", "las", "una", "para", "con", "que", "por", "del", "está", "se",
        ],
    ),
    (
        "pt",
        &[
            "não", "uma", "para", "com", "que", "os", "foi", "em", "do", "da", "são",
        ],
    ),
    (
        "it",
        &[
            "il", "che", "non", "una", "per", "con", "gli", "della", "sono", "è", "di",
        ],
    ),
];

/// How many letters of each script there are.
#[derive(Debug, Clone, Copy, Default)]
struct Letters {
    /// Kana, Hangul, Han, Cyrillic, Arabic, Hebrew, Devanagari, Thai, Greek.
    counts: [usize; 9],
    latin: usize,
}

fn letters<'a>(texts: impl Iterator<Item = &'a str>) -> Letters {
    let mut found = Letters::default();
    let Letters { counts, latin } = &mut found;
    for c in texts.flat_map(str::chars) {
        let n = match c {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => {
                *latin += 1;
                continue;
            }
            '\u{3040}'..='\u{30ff}' => 0,
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => 1,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => 2,
            '\u{400}'..='\u{4ff}' => 3,
            '\u{600}'..='\u{6ff}' => 4,
            '\u{590}'..='\u{5ff}' => 5,
            '\u{900}'..='\u{97f}' => 6,
            '\u{e00}'..='\u{e7f}' => 7,
            '\u{370}'..='\u{3ff}' => 8,
            _ => continue,
        };
        if let Some(count) = counts.get_mut(n) {
            *count += 1;
        }
    }
    found
}

/// Whether a text is in a language that what was said is not in, where both are clear; a text in
/// a script of which what was said has next to nothing is, too.
pub(super) fn differs<'a>(said: impl Iterator<Item = &'a str> + Clone, text: &'a str) -> bool {
    let Some(written) = language([text].into_iter()) else {
        return false;
    };
    if let Some(spoken) = language(said.clone()) {
        // Much code makes a text look Latin; what is said in it may be in the right script.
        let there = matches!(written, Language::Latin(_)) && {
            let counts = letters([text].into_iter()).counts;
            let of = |n: usize| counts.get(n).copied().unwrap_or(0);
            spoken.scripts().iter().map(|n| of(*n)).sum::<usize>() >= FEWEST / 2
        };
        return spoken != written && !there;
    }
    let spoken = letters(said);
    let all = spoken.latin + spoken.counts.iter().sum::<usize>();
    let there = |n: usize| spoken.counts.get(n).copied().unwrap_or(0);
    if matches!(written, Language::Latin(_)) {
        return false;
    }
    let of_script: usize = written.scripts().iter().map(|n| there(*n)).sum();
    all >= FEWEST && of_script * 100 < all
}

/// The language of a text; `None` where it is not clear.
pub(super) fn language<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<Language> {
    let Letters { counts, latin } = letters(texts.clone());
    let [
        kana,
        hangul,
        han,
        cyrillic,
        arabic,
        hebrew,
        devanagari,
        thai,
        greek,
    ] = counts;
    // Names, code and commands are Latin in every language: a sixth of another script decides.
    let other = counts.iter().sum::<usize>();
    if other * 6 >= latin && other >= FEWEST / 2 {
        // Kana decide for Japanese even among more Han.
        let japanese = if kana * 8 >= han { kana + han } else { 0 };
        return [
            (japanese, Language::Japanese),
            (hangul, Language::Korean),
            (han, Language::Chinese),
            (cyrillic, Language::Cyrillic),
            (arabic, Language::Arabic),
            (hebrew, Language::Hebrew),
            (devanagari, Language::Devanagari),
            (thai, Language::Thai),
            (greek, Language::Greek),
        ]
        .into_iter()
        .rev()
        .max_by_key(|(count, _)| *count)
        .map(|(_, language)| language);
    }
    if latin < FEWEST || other * 20 > latin {
        return None;
    }
    let mut hits = [0_usize; COMMON.len()];
    for word in texts.flat_map(|text| text.split(|c: char| !c.is_alphabetic())) {
        if word.len() > 5 {
            continue;
        }
        let word = word.to_lowercase();
        for ((_, common), hits) in COMMON.iter().zip(&mut hits) {
            *hits += usize::from(common.contains(&word.as_str()));
        }
    }
    let (best, most) = hits
        .iter()
        .enumerate()
        .max_by_key(|(n, hits)| (**hits, COMMON.len() - n))?;
    let next = hits
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != best)
        .map(|(_, hits)| *hits)
        .max()?;
    // Languages share words: only a clear lead counts.
    (*most >= 6 && *most >= next * 2)
        .then(|| Language::Latin(COMMON.get(best).map_or("en", |(name, _)| name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Language> {
        language([text].into_iter())
    }

    #[test]
    fn languages_are_told_apart() {
        assert_eq!(
            of(
                "The parser was fixed and the tests are green; it is the only thing that was left to do with this."
            ),
            Some(Language::Latin("en"))
        );
        assert_eq!(
            of(
                "Der Fehler wurde behoben und die Tests sind grün, das ist nicht alles, was mit der Datei zu tun ist."
            ),
            Some(Language::Latin("de"))
        );
        assert_eq!(
            of(
                "`next_token` を直しました。テストはすべて通りました。次は `parse_block` の課題です。"
            ),
            Some(Language::Japanese)
        );
        assert_eq!(
            of("파서를 고쳤습니다. 모든 테스트가 통과했고 다음은 문서입니다."),
            Some(Language::Korean)
        );
        assert_eq!(
            of("解析器已经修复，所有测试都通过了，下一步是更新文档并发布新版本。"),
            Some(Language::Chinese)
        );
        assert_eq!(
            of("Парсер исправлен, все тесты проходят, дальше документация."),
            Some(Language::Cyrillic)
        );
        assert_eq!(of("ok"), None);
        assert_eq!(of(""), None);
        assert_eq!(
            of("src/lexer.rs src/parser.rs cargo test --workspace cargo build"),
            None
        );
    }
}
