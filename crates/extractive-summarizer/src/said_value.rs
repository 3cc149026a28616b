//! Values in sentences: quoted texts, names of code, numbers, dates, and their forms.

use crate::value_cues::{LETTER_CASES, ZONES};

/// Kinds of values, by form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A quoted text, or a name of code.
    Code,
    /// A number, with or without a unit.
    Amount,
    Date,
    TimeZone,
    LetterCase,
    /// A system of units.
    Units,
    /// A person, a place or a product. Only the capital letter marks it.
    Name,
    /// A word that is a value only by its place in the sentence: `main` in `is main`.
    Word,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// Text of the value, as in the sentence.
    pub(crate) text: String,
    pub(crate) class: Class,
    /// Normal form, which is equal for all forms of a value: `500` for `five hundred`.
    pub(crate) key: String,
}

impl Value {
    pub(crate) fn new(text: &str, class: Class) -> Self {
        let key = match class {
            Class::LetterCase => text
                .chars()
                .filter(|c| c.is_alphanumeric())
                .flat_map(char::to_lowercase)
                .collect(),
            Class::Amount => text
                .chars()
                .filter(|c| c.is_numeric() || *c == '.')
                .collect(),
            _ => text.to_owned(),
        };
        Self {
            text: text.to_owned(),
            class,
            key,
        }
    }

    /// Creates a value and derives its class from its form: `snake_case`, `2030-01-31`, `$20`, `v2`.
    pub(crate) fn of(text: &str) -> Self {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let dashed: Vec<&str> = text.split('-').collect();
        let is_date = match dashed.as_slice() {
            [year, month, day] => {
                year.len() == 4 && digits(year) && digits(month) && digits(day) && day.len() == 2
            }
            [month, day] => month.len() == 2 && day.len() == 2 && digits(month) && digits(day),
            _ => false,
        };
        let number = text.trim_start_matches(CURRENCIES).trim_end_matches('%');
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
        match () {
            () if is_date => Self::new(text, Class::Date),
            () if is_number => Self::new(text, Class::Amount),
            () if is_letter_case(text) => Self::new(text, Class::LetterCase),
            () if ZONES.contains(&text) => Self::new(text, Class::TimeZone),
            () => Self::new(text, Class::Code),
        }
    }

    /// Returns whether two values are the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.key == other.key
    }

    /// Returns whether one value can replace the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let free = |value: &Self| matches!(value.class, Class::Code | Class::Name | Class::Word);
        self.class == other.class || free(self) || free(other)
    }

    /// Returns whether both values are paths in one folder, such as `feature/a` and `feature/b`.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let folder = |text: &str| {
            let length = text.find('/')?;
            (length > 0 && !text.get(..length)?.ends_with(':')).then_some(length)
        };
        let own = folder(&self.text).and_then(|length| self.text.get(..=length));
        own.is_some_and(|own| other.text.starts_with(own))
    }

    /// Returns whether both values are names of the same form with digits, such as `ab-12` and `xyz-7`.
    pub(crate) fn is_formed_like(&self, other: &Self) -> bool {
        let form = |value: &Self| {
            let mut form = String::new();
            for c in value.text.chars() {
                let kind = match c {
                    _ if c.is_numeric() => '0',
                    _ if c.is_uppercase() => 'A',
                    _ if c.is_alphabetic() => 'a',
                    _ => c,
                };
                if !form.ends_with(kind) || !kind.is_alphanumeric() {
                    form.push(kind);
                }
            }
            form
        };
        let own = form(self);
        self.class == Class::Code
            && other.class == Class::Code
            && own.contains('0')
            && own.contains(['a', 'A'])
            && own == form(other)
    }

    /// Returns whether the value has the form of an ordinary word.
    pub(crate) fn is_weak(&self) -> bool {
        matches!(self.class, Class::Name | Class::Word)
    }
}

/// Currency signs, which mark a number as an amount of money.
pub(crate) const CURRENCIES: [char; 4] = ['$', '€', '£', '¥'];

/// Returns whether a text names a letter case, such as `snake case` or `PascalCase`.
pub(crate) fn is_letter_case(text: &str) -> bool {
    let ends = |text: &str, end: &str| {
        let at = text.len().checked_sub(end.len());
        let tail = at.and_then(|at| text.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    if !["case", "caps", "capitals"]
        .iter()
        .any(|end| ends(text, end))
    {
        return false;
    }
    let bare: String = text
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    LETTER_CASES.contains(&bare.as_str())
}
