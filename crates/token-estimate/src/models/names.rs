//! Matches the name of a model with the names in a table.

/// Returns the index of the name in `names` that matches `given`. [`get`](super::get) describes the rule.
pub(crate) fn resolve<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Option<usize> {
    spellings(given).into_iter().find_map(|spelling| {
        let place = |same: fn(&str, &str) -> bool| {
            let mut names = names.clone();
            names.position(|name| same(name, spelling))
        };
        place(|a, b| a == b).or_else(|| place(alike))
    })
}

/// Returns the spellings to look up, in order: the name itself, the part after each slash, and then each of these
/// without a version at the end.
fn spellings(given: &str) -> Vec<&str> {
    let after_slashes = given.match_indices('/').map(|(at, _)| &given[at + 1..]);
    let mut spellings: Vec<_> = std::iter::once(given).chain(after_slashes).collect();
    for n in 0..spellings.len() {
        spellings.extend(unversioned(spellings[n]));
    }
    spellings
}

/// Returns the name without `-latest` or a date at the end, such as `-20250929`, `@20250929` or `-2024-08-06`.
fn unversioned(name: &str) -> Option<&str> {
    name.strip_suffix("-latest").or_else(|| {
        ["-20250929", "-2024-08-06"].into_iter().find_map(|form| {
            let (front, date) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
            let date = date.strip_prefix(['-', '@'])?;
            let dated = is_date(date) || date.len() == 8 && is_date(&hyphenated(date)?);
            dated.then_some(front)
        })
    })
}

/// Converts a date such as `20250929` to `2025-09-29`.
fn hyphenated(date: &str) -> Option<String> {
    let (year, rest) = date.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2)?;
    Some(format!("{year}-{month}-{day}"))
}

/// Returns whether the text is a valid date such as `2026-11-23`.
pub(crate) fn is_date(text: &str) -> bool {
    let mut parts = text.split('-').map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        (part.len(), part.parse::<u32>().ok().filter(|_| digits))
    });
    let date = [parts.next(), parts.next(), parts.next(), parts.next()];
    let [
        Some((4, Some(year))),
        Some((2, Some(month))),
        Some((2, Some(day))),
        None,
    ] = date
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Returns whether two names differ only in case, or in a hyphen instead of a dot.
pub(crate) fn alike(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().map(plain).eq(b.bytes().map(plain))
}

fn plain(byte: u8) -> u8 {
    match byte {
        b'.' => b'-',
        _ => byte.to_ascii_lowercase(),
    }
}

/// Returns the three names that are nearest to the last part of `given`, the nearest one first.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let given = given.rsplit('/').next().unwrap_or(given);
    let mut names: Vec<_> = names.map(|name| (distance(given, name), name)).collect();
    names.sort_by_key(|(distance, _)| *distance);
    let nearest = names.into_iter().take(3);
    nearest.map(|(_, name)| name.to_owned()).collect()
}

/// Returns the number of bytes to insert, delete or replace to turn `a` into `b`. Ignores case and dots.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().map(plain).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, byte) in a.bytes().map(plain).enumerate() {
        let mut diagonal = n;
        row[0] = n + 1;
        for m in 0..b.len() {
            let replaced = diagonal + usize::from(byte != b[m]);
            diagonal = row[m + 1];
            row[m + 1] = replaced.min(row[m].min(diagonal) + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "gpt-5",
        "gpt-5.1",
        "gpt-4o-2024-05-13",
        "gpt-4o",
        "claude-sonnet-4-5",
        "house/model",
    ];

    fn found(given: &str) -> Option<&'static str> {
        resolve(given, NAMES.iter().copied()).map(|n| NAMES[n])
    }

    #[test]
    fn names_resolve_exactly_then_by_the_rule() {
        for (given, expected) in [
            ("gpt-5", "gpt-5"),
            ("GPT-5.1", "gpt-5.1"),
            ("gpt-5-1", "gpt-5.1"),
            ("openai/gpt-5", "gpt-5"),
            ("openrouter/openai/gpt-5-2025-08-07", "gpt-5"),
            ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
            ("openai/gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5-latest", "claude-sonnet-4-5"),
            ("house/model", "house/model"),
            ("our/house/model", "house/model"),
        ] {
            assert_eq!(found(given), Some(expected), "{given}");
        }
    }

    #[test]
    fn other_names_do_not_resolve() {
        for given in [
            "",
            "gpt",
            "gpt-5-mini",
            "gpt-5/",
            "model",
            "gpt-5-20251399",
            "gpt-5-2025-02-30",
            "gpt-5-0125",
            "gpt-520250929",
            "-latest",
            "gpt-5-latest-latest",
            "ü-20250929",
            "gpt-5ü20250929",
        ] {
            assert_eq!(found(given), None, "{given}");
        }
    }

    #[test]
    fn dates_are_days_of_the_calendar() {
        for date in ["2026-11-23", "2024-02-29", "2000-02-29", "2025-12-31"] {
            assert!(is_date(date), "{date}");
        }
        for text in [
            "",
            "2026-11",
            "2025-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "26-01-01",
            "2026-1-1",
            "2026-01-01-",
            "2026-+1-01",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("saturday", "sunday", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("GPT-5.1", "gpt-5-1", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
        let near = nearest("openai/gpt-51", NAMES.iter().copied());
        assert_eq!(near[..2], ["gpt-5", "gpt-5.1"]);
    }
}
