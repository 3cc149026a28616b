//! Dates in a question.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use memory_model::Timestamp;

use super::document::is_year;
use sentence_model::words::WordLists;

/// Words before the name of a month that is also another word (`may`, `march`).
const BEFORE_MONTH: [&str; 11] = [
    "in", "of", "on", "early", "late", "since", "until", "by", "during", "st", "th",
];

/// The sign after a year in Chinese, Japanese and Korean.
const YEAR_SIGNS: [char; 2] = ['年', '년'];

/// A date in a question. Parts that the question does not give are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskedDate {
    pub(super) year: Option<i16>,
    pub(super) month: Option<i8>,
    pub(super) day: Option<i8>,
}

/// Closeness of a time to a date in the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearness {
    /// On the day, or up to two days later.
    Day,
    /// Three to eight days after the day.
    Week,
    /// In the month, if the question does not give a complete date.
    Month,
    /// In the year, if the question does not give a month.
    Year,
}

impl AskedDate {
    /// Returns the dates in a question. `words` are its case-folded words, and `text` is its text.
    pub(super) fn all(words: &[String], text: &str) -> Vec<AskedDate> {
        let mut dates: Vec<AskedDate> = (0..words.len())
            .filter_map(|at| Self::by_name(words, at))
            .collect();
        dates.extend(words.windows(3).filter_map(Self::by_numbers));
        let written = words.windows(3);
        dates.extend(written.flat_map(|three| Self::by_numbers_to_year(three, text)));
        dates.extend((0..words.len()).filter_map(|at| Self::by_signs(words, at)));
        if dates.is_empty() {
            let years = words.iter().filter(|word| is_year(word));
            dates.extend(years.map(|year| AskedDate {
                year: year.parse().ok(),
                month: None,
                day: None,
            }));
        }
        dates
    }

    /// Reads a date with the name of a month: `5 May 2023`, `May 5th, 2023`, `in May`.
    fn by_name(words: &[String], at: usize) -> Option<AskedDate> {
        let word = |offset: isize| {
            let at = at.checked_add_signed(offset)?;
            words.get(at).map(String::as_str)
        };
        let month = WordLists::month(word(0)?)?;
        let day_of = |offset| day(word(offset)?);
        let day = day_of(-1).or_else(|| day_of(1)).or_else(|| {
            let ordinal = matches!(word(-1), Some("of" | "st" | "nd" | "rd" | "th" | "de"));
            if ordinal { day_of(-2) } else { None }
        });
        let year_of = |offset| word(offset).filter(|word| is_year(word))?.parse().ok();
        let year = year_of(1).or_else(|| year_of(2)).or_else(|| year_of(3));
        let is_other_word = matches!(word(0), Some("may" | "march" | "mars" | "julio"));
        let is_month = !is_other_word
            || day.is_some()
            || year_of(1).is_some()
            || word(-1).is_some_and(|before| BEFORE_MONTH.contains(&before));
        is_month.then_some(AskedDate {
            year,
            month: Some(month),
            day,
        })
    }

    /// Reads a date with signs that begins at index `at`: `2023年5月8日`, `2023년 5월 8일`. Year or day may be missing.
    fn by_signs(words: &[String], at: usize) -> Option<AskedDate> {
        let number = |at: usize| words.get(at)?.parse::<i8>().ok();
        let has_sign = |at: usize, signs: [char; 2]| {
            let word = words.get(at);
            word.is_some_and(|word| word.starts_with(signs))
        };
        if at >= 1 && has_sign(at - 1, YEAR_SIGNS) {
            return None;
        }
        let year = words.get(at).filter(|word| is_year(word));
        let year = year.filter(|_| has_sign(at + 1, YEAR_SIGNS));
        let at = if year.is_some() { at + 2 } else { at };
        let month = number(at).filter(|month| (1..=12).contains(month))?;
        let day = number(at + 2).filter(|day| (1..=31).contains(day));
        has_sign(at + 1, ['月', '월']).then(|| AskedDate {
            year: year.and_then(|year| year.parse().ok()),
            month: Some(month),
            day: day.filter(|_| has_sign(at + 3, ['日', '일'])),
        })
    }

    /// Reads the dates `8.5.2023`, `8-5-2023` and `8/5/2023`. The last one is also read with the month first.
    fn by_numbers_to_year(words: &[String], text: &str) -> Vec<AskedDate> {
        let [first, second, year] = words else {
            return Vec::new();
        };
        let written = |sign: char| text.contains(&format!("{first}{sign}{second}{sign}{year}"));
        let mut orders = Vec::new();
        if written('.') || written('-') || written('/') {
            orders.push((first, second));
        }
        if written('/') && first != second {
            orders.push((second, first));
        }
        let dates = orders.into_iter();
        dates
            .filter_map(|(day, month)| Self::whole(year, month, day))
            .collect()
    }

    /// Reads the date `2023-05-08`.
    fn by_numbers(words: &[String]) -> Option<AskedDate> {
        match words {
            [year, month, day] => Self::whole(year, month, day),
            _ => None,
        }
    }

    /// Returns a date with year, month and day. `None` if there is no such date.
    fn whole(year: &str, month: &str, day: &str) -> Option<AskedDate> {
        let date = AskedDate {
            year: Some(year.parse().ok().filter(|_| is_year(year))?),
            month: Some(month.parse().ok()?),
            day: Some(day.parse().ok()?),
        };
        date.civil().map(|_| date)
    }

    fn civil(self) -> Option<Date> {
        Date::new(self.year?, self.month?, self.day?).ok()
    }

    /// Returns the closeness of a time, in UTC, to this date. `None` if the time is unknown or not close.
    pub(super) fn nearness(self, time: Timestamp) -> Option<Nearness> {
        let date = jiff::Timestamp::from_microsecond(time.known()?.0).ok()?;
        let date = date.to_zoned(TimeZone::UTC).date();
        if let Some(day) = self.civil() {
            let later = day.until(date).ok()?.get_days();
            return match later {
                0..=2 => Some(Nearness::Day),
                3..=8 => Some(Nearness::Week),
                _ => None,
            };
        }
        let year = self.year.is_none_or(|year| year == date.year());
        let day = self.day.is_none_or(|day| (day - date.day()).abs() <= 3);
        match self.month {
            Some(month) if year && day && month == date.month() => Some(Nearness::Month),
            None if year => Some(Nearness::Year),
            _ => None,
        }
    }
}

/// Reads the day of a month: `5`, `5th`.
fn day(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let ending = word.get(digits.len()..)?;
    let is_day = matches!(ending, "" | "st" | "nd" | "rd" | "th");
    digits
        .parse()
        .ok()
        .filter(|day| is_day && (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sentence_model::fold::fold_case;
    use sentence_model::words::Tokenizer;

    fn dates(question: &str) -> Vec<(Option<i16>, Option<i8>, Option<i8>)> {
        let mut words = Vec::new();
        Tokenizer::RANKING.visit_query(question, &mut |range, _| {
            words.push(fold_case(&question[range]));
        });
        let dates = AskedDate::all(&words, question);
        let fields = dates.iter().map(|date| (date.year, date.month, date.day));
        fields.collect()
    }

    #[test]
    fn dates_are_read() {
        let full = (Some(2023), Some(5), Some(8));
        for question in [
            "on may 8 2023",
            "on 8 may 2023",
            "on may 8th 2023",
            "the 8th of may 2023",
            "on 2023-05-08",
            "on 8.5.2023",
            "am 08.05.2023",
            "am 8. Mai 2023",
            "le 8 mai 2023",
            "el 8 de mayo de 2023",
            "8 мая 2023 года",
            "2023年5月8日に何を話しましたか",
            "2023年5月8日我们说了什么？",
            "2023년 5월 8일에 무엇을",
        ] {
            assert_eq!(dates(question), [full], "{question}");
        }
        assert_eq!(dates("on 13/5/2023"), dates("on 5/13/2023"));
        assert_eq!(dates("on 5/8/2023").len(), 2);
        assert_eq!(dates("5月に"), [(None, Some(5), None)]);
        assert_eq!(dates("in june"), [(None, Some(6), None)]);
        assert_eq!(dates("in may 2022"), [(Some(2022), Some(5), None)]);
        assert_eq!(dates("summer of 2022"), [(Some(2022), None, None)]);
        for question in [
            "may i ask",
            "the march of time",
            "on 2023 15 40",
            "version 1.40.2023",
            "8 5 2023",
            "13月",
            "40 apples",
        ] {
            let none = dates(question).iter().all(|date| date.1.is_none());
            assert!(none, "{question}: {:?}", dates(question));
        }
    }

    #[test]
    fn times_are_near_a_date() {
        let date = AskedDate {
            year: Some(2023),
            month: Some(5),
            day: Some(30),
        };
        let month = AskedDate { day: None, ..date };
        let year = AskedDate {
            month: None,
            ..month
        };
        let near = |date: AskedDate, day: &str| {
            date.nearness(Timestamp::parse(&format!("{day}T23:00:00Z")).unwrap())
        };
        assert_eq!(near(date, "2023-05-30"), Some(Nearness::Day));
        assert_eq!(near(date, "2023-06-05"), Some(Nearness::Week));
        assert_eq!(near(date, "2023-05-29"), None);
        assert_eq!(near(month, "2023-05-01"), Some(Nearness::Month));
        assert_eq!(near(month, "2022-05-01"), None);
        assert_eq!(near(year, "2023-12-01"), Some(Nearness::Year));
    }
}
