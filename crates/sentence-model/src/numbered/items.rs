//! Reads the numbers of a sentence: their units, dates, times, labels and ordinals.

use std::ops::Range;

use super::counted::HAN_KEY;
use super::item::{Form, Item, clock, dimension, point, value};
use super::lexicon::{LEXICON, is_han};
use super::reader::Reader;
use super::sentence::{DATE, WEEKDAY};
use super::spelling::stem;
use super::token::{Kind, han_value};

impl Reader<'_> {
    /// Returns the numbers.
    pub(super) fn items(&self) -> Vec<Item> {
        let mut out: Vec<Item> = Vec::new();
        let mut n = 0;
        while n < self.tokens.len() {
            let Some((tokens, form, number)) = self.item(n) else {
                n += 1;
                continue;
            };
            n = tokens.end.max(n + 1);
            let start = self
                .tokens
                .get(tokens.start)
                .map_or(0, |token| token.range.start);
            let end = tokens.end.checked_sub(1).and_then(|n| self.tokens.get(n));
            let end = end.map_or(start, |token| token.range.end);
            out.push(Item {
                tokens,
                range: start..end,
                form,
                number,
                is_former: false,
            });
        }
        let former: Vec<bool> = (0..out.len()).map(|at| self.is_former(&out, at)).collect();
        for (item, is_former) in out.iter_mut().zip(former) {
            item.is_former = is_former;
        }
        out
    }

    /// Returns whether the number is one that no longer holds: `not 5`, or `5` in `from 5 to 7`.
    fn is_former(&self, items: &[Item], at: usize) -> bool {
        let Some(item) = items.get(at) else {
            return false;
        };
        let mut n = item.tokens.start;
        while n > 0 && LEXICON.has("beside", self.before(n, 1)) {
            n -= 1;
        }
        let one = self.before(n, 1);
        let two = format!("{} {one}", self.before(n, 2));
        if LEXICON.ends("former", one) || LEXICON.has("former", &two) {
            return true;
        }
        let mut later = items.get(at + 1..).unwrap_or_default().iter();
        let is_alike = |other: &Item| {
            std::mem::discriminant(&other.form) == std::mem::discriminant(&item.form)
                && dimension(other) == dimension(item)
        };
        LEXICON.ends("from", one) && later.any(is_alike)
    }

    /// Returns the tokens, the form and the number of the number at a token.
    fn item(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let token = self.tokens.get(n)?;
        match token.kind {
            Kind::Number if token.text.starts_with(is_han) => self.han_item(n),
            Kind::Number => self.number(n),
            Kind::Word => self.word(n),
            Kind::Han | Kind::Mark => None,
        }
    }

    /// Reads a number that is written as a word.
    fn word(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let token = self.tokens.get(n)?;
        let word = token.text.as_str();
        if let Some(day) = LEXICON.weekdays.get(word) {
            let form = point(WEEKDAY, day.to_string());
            return Some((n..n + 1, form, day.to_string()));
        }
        if token.is_capital
            && let Some(month) = LEXICON.months.get(word)
        {
            let day = |n: usize| -> Option<u32> {
                let text = self
                    .at(n)
                    .trim_end_matches(|c: char| c.is_ascii_lowercase());
                text.parse().ok().filter(|day| (1..=31).contains(day))
            };
            let amount = |day: u32| format!("{month:02}-{day:02}");
            if let Some(day) = day(n + 1) {
                let form = point(DATE, amount(day));
                return Some((n..n + 2, form, amount(day)));
            }
            let year = self.at(n + 1);
            if year.len() == 4 && year.parse::<u32>().is_ok() {
                let amount = format!("{year}-{month:02}");
                return Some((n..n + 2, point("month", amount.clone()), amount));
            }
            // `3 March` and `3. März` are read at the number. A month alone is a date, too.
            let is_name = LEXICON.has("dated", self.before(n, 1));
            return is_name.then(|| {
                let form = point("month", month.to_string());
                (n..n + 1, form, month.to_string())
            });
        }
        // `Plan B`.
        let label = self
            .before_label(n)
            .filter(|_| word.len() == 1 && token.is_capital && word != "i");
        if let Some(key) = label {
            return Some((n..n + 1, Form::Name { key }, word.to_owned()));
        }
        // `Once it is done` is no number.
        let ends = !self.is_content(n + 1) && self.at(n + 1) != "the" && self.at(n + 1) != "it";
        if let Some(times) = LEXICON.times.get(word).filter(|_| ends || word != "once") {
            let form = value("times", &times.to_string());
            return Some((n..n + 1, form, times.to_string()));
        }
        if let Some(number) = LEXICON.ordinals.get(word) {
            let counts = LEXICON.has("per", self.before(n, 1));
            // `By the fifth`.
            let is_day = LEXICON.has("article", self.before(n, 1)) || self.before(n, 1) == "zum";
            if is_day && !self.is_content(n + 1) && *number < 32 {
                let form = point("day", format!("{number:02}"));
                return Some((n..n + 1, form, number.to_string()));
            }
            let follows = self.is_content(n + 1) && !LEXICON.units.contains_key(self.at(n + 1));
            if counts || !follows || self.is_cue(n + 1) {
                return None;
            }
            // `the second quarter` is `Q2`.
            let key = stem(self.at(n + 1));
            return Some((n..n + 2, Form::Name { key }, number.to_string()));
        }
        let number = match word {
            "one" if LEXICON.has("numbered", self.before(n, 1)) => 1,
            // `For an hour`, `a single page`.
            _ if LEXICON.has("one", word)
                && LEXICON.has("takes", self.before(n, 1))
                && LEXICON.units.contains_key(self.at(n + 1)) =>
            {
                1
            }
            _ if LEXICON.has("single", word) => 1,
            "quarter" | "half" | "viertel" => return self.fraction(n),
            "noon" | "midday" => return Some((n..n + 1, clock(12, 0), "12:00".to_owned())),
            "midnight" | "mitternacht" => return Some((n..n + 1, clock(0, 0), "0:00".to_owned())),
            "halb" => {
                let hour = LEXICON.digits.get(self.at(n + 1)).copied();
                let hour = hour.or_else(|| self.at(n + 1).parse().ok())?;
                let hour = hour.checked_sub(1)?;
                return Some((n..n + 2, clock(hour, 30), format!("{hour}:30")));
            }
            // `forty-five`
            _ => word
                .split('-')
                .map(|part| {
                    LEXICON
                        .digits
                        .get(part)
                        .copied()
                        .or((part == "one").then_some(1))
                })
                .sum::<Option<u32>>()
                .filter(|_| word != "one")?,
        };
        // `six hundred`
        let (number, end) = match self.at(n + 1) {
            "hundred" | "hundert" if number < 100 => (number * 100, n + 2),
            _ => (number, n + 1),
        };
        self.counted(n, end, &number.to_string(), None)
    }

    /// Reads a time such as `a quarter to nine`.
    fn fraction(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let hour = self.at(n + 2);
        let hour = LEXICON
            .digits
            .get(hour)
            .copied()
            .or_else(|| hour.parse().ok());
        let hour = hour.filter(|hour| (1..25).contains(hour))?;
        let (hour, minute) = match (self.at(n), self.at(n + 1)) {
            ("half", "past") => (hour, 30),
            (_, "past" | "nach") => (hour, 15),
            (_, "to" | "vor") => (hour - 1, 45),
            _ => return None,
        };
        Some((n..n + 3, clock(hour, minute), format!("{hour}:{minute}")))
    }

    /// Reads a number in Han characters.
    fn han_item(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let text = self.at(n);
        if let Some((_, day)) = LEXICON.han_days.longest(text) {
            let form = point(WEEKDAY, day.to_string());
            return Some((n..n + 1, form, day.to_string()));
        }
        if let Some(digits) = text.strip_prefix('第') {
            let number = han_value(digits)?.to_string();
            let key = self.han_key(n + 1);
            return Some((n..n + 1, Form::Name { key }, number));
        }
        let number = han_value(text)?.to_string();
        self.counted(n, n + 1, &number, None)
    }

    /// Returns the Han characters at the beginning of a token that name the numbered thing.
    pub(super) fn han_key(&self, n: usize) -> String {
        let text = self.at(n);
        let first: String = text.chars().take(1).collect();
        let is_single = LEXICON.namers.all(&first).next().is_some()
            || LEXICON.counters.all(&first).next().is_some();
        let length = if is_single { 1 } else { HAN_KEY };
        let is_key = |c: &char| is_han(*c) && !LEXICON.empty_chars.contains(c);
        let key: String = text.chars().take_while(is_key).take(length).collect();
        LEXICON.alias.get(key.as_str()).map_or(key, |key| stem(key))
    }

    /// Reads a number that is written with digits.
    fn number(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let text = self.at(n).to_owned();
        let before = self.before(n, 1);
        if before == "#" {
            let key = self.before_label(n - 1).unwrap_or_default();
            return Some((n - 1..n + 1, Form::Name { key }, text));
        }
        if before.ends_with('第') {
            let key = self.han_key(n + 1);
            return Some((n..n + 1, Form::Name { key }, text));
        }
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let (body, is_late) = match text.strip_suffix("pm") {
            Some(body) if body.ends_with(|c: char| c.is_ascii_digit()) => (body, Some(true)),
            _ => match text.strip_suffix("am") {
                Some(body) if body.ends_with(|c: char| c.is_ascii_digit()) => (body, Some(false)),
                _ => (text.as_str(), None),
            },
        };
        let (is_late, end) = match self.at(n + 1) {
            "am" if is_late.is_none() && !self.is_german => (Some(false), n + 2),
            "pm" if is_late.is_none() => (Some(true), n + 2),
            "o'clock" => (is_late.or(Some(false)), n + 2),
            "uhr" if !body.contains('-') => (Some(false), n + 2),
            _ => (is_late, n + 1),
        };
        let hour = |hour: u32| match is_late {
            Some(true) if hour < 12 => hour + 12,
            _ => hour,
        };
        if let Some((hours, minutes)) = body.split_once(':')
            && let (Ok(hours), Ok(minutes)) = (
                hours.parse::<u32>(),
                minutes.get(..2).unwrap_or("").parse::<u32>(),
            )
        {
            return Some((
                n..end,
                clock(self.late(n, hour(hours)), minutes),
                text.clone(),
            ));
        }
        if is_late.is_some()
            && let Ok(hours) = body.parse::<u32>()
        {
            if let ("uhr", Ok(minutes)) = (self.at(n + 1), self.at(n + 2).parse::<u32>()) {
                return Some((n..n + 3, clock(hours, minutes), text.clone()));
            }
            return Some((n..end, clock(hour(hours), 0), text.clone()));
        }
        let date = |year: &str, month: &str, day: &str| {
            let is_date = digits(month) && digits(day) && (year.is_empty() || digits(year));
            let numbers = (month.parse::<u32>().ok()?, day.parse::<u32>().ok()?);
            let is_date = is_date && (1..=12).contains(&numbers.0) && (1..=31).contains(&numbers.1);
            is_date.then(|| format!("{:02}-{:02}", numbers.0, numbers.1))
        };
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        let written = match parts.as_slice() {
            [year, month, day] if year.len() == 4 => date(year, month, day),
            [day, month, year] if year.len() == 4 => date(year, month, day),
            [month, day] if text.contains('/') => date("", month, day),
            // `3.5.` in German
            [day, month]
                if text.contains('.')
                    && self.is_german
                    && self.touches(n)
                    && self.at(n + 1) == "." =>
            {
                date("", month, day).filter(|_| {
                    matches!(
                        before,
                        "am" | "vom" | "zum" | "bis" | "den" | "auf" | "dem" | "ab"
                    ) && (before != "auf" || n + 2 < self.tokens.len())
                })
            }
            _ => None,
        };
        if let Some(amount) = written {
            return Some((n..n + 1, point(DATE, amount.clone()), amount));
        }
        if let Some(found) = self.day(n, &text) {
            return Some(found);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let length = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
            let (number, unit) = (text.get(..length)?, text.get(length..)?);
            return match unit {
                "" => self.counted(n, n + 1, number, None),
                // `Der 48er`.
                "er" if self.is_german => self.counted(n, n + 1, number, None),
                "st" | "nd" | "rd" | "th" => match self.is_content(n + 1) && !self.is_cue(n + 1) {
                    true => {
                        let key = stem(self.at(n + 1));
                        Some((n..n + 2, Form::Name { key }, number.to_owned()))
                    }
                    false => {
                        let amount = format!("{number:0>2}");
                        Some((
                            n..n + 1,
                            Form::Date {
                                dimension: "day",
                                amount,
                            },
                            number.to_owned(),
                        ))
                    }
                },
                _ if LEXICON.units.contains_key(unit) || LEXICON.scales.contains_key(unit) => {
                    self.counted(n, n + 1, number, Some(unit))
                }
                // `7b` and `12-3` name as whole words.
                _ => {
                    let key = self.before_label(n).unwrap_or_default();
                    Some((n..n + 1, Form::Label { key }, text))
                }
            };
        }
        // A code, such as `worker-3`, `v2` or `LH123`.
        let length = text.find(|c: char| c.is_ascii_digit())?;
        let key = text.get(..length)?.trim_end_matches(['-', '_', '.']);
        let number = text.get(length..)?.to_owned();
        let is_word = self.kind(n.wrapping_sub(1)) != Some(Kind::Han) || number.len() < 2;
        let short = is_word && key.chars().count() < 2 && !LEXICON.alias.contains_key(key);
        let label = if short { self.before_label(n) } else { None };
        match label {
            Some(label) => Some((n..n + 1, Form::Label { key: label }, text)),
            None if !LEXICON.alias.contains_key(key) => Some((
                n..n + 1,
                Form::Code {
                    key: stem(key),
                    text,
                },
                number,
            )),
            None => Some((n..n + 1, Form::Label { key: stem(key) }, number)),
        }
    }

    /// Returns an hour, moved to the afternoon if the words before it say so.
    fn late(&self, n: usize, hour: u32) -> u32 {
        let late = ["下午", "晚上", "傍晚"]
            .iter()
            .any(|word| self.before(n, 1).ends_with(word));
        if late && hour < 12 { hour + 12 } else { hour }
    }

    /// Reads the day of a date: `3 March`, `3. Mai`, `5月3日`, and the time `9点半`.
    pub(super) fn day(&self, n: usize, text: &str) -> Option<(Range<usize>, Form, String)> {
        let number: u32 = text
            .trim_end_matches(|c: char| c.is_ascii_lowercase())
            .parse()
            .ok()?;
        let date = |month: u32, day: u32| point(DATE, format!("{month:02}-{day:02}"));
        let mut month = n + 1;
        while matches!(self.at(month), "." | "of") {
            month += 1;
        }
        let is_month = |n: usize| self.tokens.get(n).is_some_and(|token| token.is_capital);
        if let Some(of) = LEXICON
            .months
            .get(self.at(month))
            .filter(|_| is_month(month))
            && (1..=31).contains(&number)
        {
            return Some((n..month + 1, date(*of, number), format!("{of}-{number}")));
        }
        let is_capital = |n: usize| {
            let token = self.tokens.get(n);
            token.is_some_and(|token| token.is_capital && token.kind == Kind::Word)
        };
        // `Am 14. um 8 Uhr`.
        if self.at(n + 1) == "."
            && self.touches(n)
            && self.is_german
            && matches!(self.before(n, 1), "am" | "zum" | "vom" | "den" | "dem")
            && self.at(n).starts_with(|c: char| c.is_ascii_digit())
            && !is_capital(n + 2)
            && number < 32
        {
            let form = point("day", format!("{number:02}"));
            return Some((n..n + 2, form, text.to_owned()));
        }
        // An ordinal of German: `1. Quartal`.
        if self.at(n + 1) == "."
            && self.touches(n)
            && !self.touches(n + 1)
            && self.is_german
            && is_capital(n + 2)
        {
            let key = stem(self.at(n + 2));
            return Some((n..n + 3, Form::Name { key }, text.to_owned()));
        }
        let next = self.at(n + 1);
        if next.starts_with('月') && (1..=12).contains(&number) {
            let after = self.at(n + 2);
            if next == "月"
                && (self.at(n + 3).starts_with(['日', '号']))
                && let Ok(day) = after.parse::<u32>()
            {
                return Some((n..n + 3, date(number, day), format!("{number}-{day}")));
            }
            let form = point("month", number.to_string());
            return Some((n..n + 1, form, number.to_string()));
        }
        let is_clock =
            next.starts_with('点') || (next.starts_with('时') && !next.starts_with("时间"));
        if is_clock && number < 25 {
            let hour = self.late(n, number);
            let minute = match next {
                _ if next.starts_with("点半") => 30,
                "点" => self
                    .at(n + 2)
                    .parse()
                    .ok()
                    .filter(|minute| *minute < 60)
                    .unwrap_or(0),
                _ => 0,
            };
            let end = if minute > 0 && minute != 30 {
                n + 3
            } else {
                n + 1
            };
            return Some((n..end, clock(hour, minute), text.to_owned()));
        }
        None
    }
}
