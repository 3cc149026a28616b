//! Words that are values or occur with values, and words that do not describe a subject.

/// Words that do not describe the subject of a rule, separated by spaces.
pub(crate) const STOP_WORDS: &str = "\
    a about additionally again all also always am an and any anymore are as at be been but by can come comes could \
    do does each ensure every first firstly for forward from going had has have he here how if in instead into is it \
    its just lastly let like likewise longer make may me mind more moving must my need never no not now of on one \
    ones only or our new old consistency convention conventions rule rules guideline guidelines standard standards \
    instruction instructions practice important please remember second secondly shall she should similarly so some \
    stop sure than that the their them then there these they this those to too us use used using want was we well \
    were what when whenever where which while who will with would write writing written coding declare declaring \
    define defining create creating you your actually correction consistently active planned expected official final \
    target total another thing things dollars euros pounds yen percent yes ok okay sorry hello hi unfortunately \
    finally duty duties role roles itself themselves prefer prefers basically honestly ideally generally usually current currently done earlier follow follows throughout \
    across following get goes keep previous previously put quick regarding concerning same set specific specifically \
    stay today onto within whether der die das den dem des ein eine einen einem einer und oder aber nicht kein keine \
    mehr mit auf aus bei für im ist sind wird werden wir ich du sie es er ab jetzt sofort bitte immer alle allen \
    statt sondern von vom zu zum zur nun doch noch soll sollen muss müssen heißt läuft schreibe schreibst schreiben \
    verwende verwenden nutze benutze wie als";

/// Names for the answers of an assistant.
pub(crate) const ANSWERS: &[&str] = &[
    "answer",
    "answers",
    "reply",
    "replies",
    "response",
    "responses",
    "explanations",
    "summaries",
];

/// Words with which a speaker asks for a certain manner of an answer.
pub(crate) const WISHES: &[&str] = &[
    "want", "wants", "prefer", "prefers", "get", "give", "like", "keep", "make", "write", "rather",
    "need", "use",
];

/// Names of letter cases, without spaces or dashes.
pub(crate) const LETTER_CASES: &[&str] = &[
    "uppercase",
    "lowercase",
    "camelcase",
    "pascalcase",
    "snakecase",
    "kebabcase",
    "titlecase",
    "screamingsnakecase",
    "allcaps",
    "capitals",
];

/// Names of systems of units, of which only one can apply.
pub(crate) const SYSTEMS: &[&str] = &["metric", "imperial", "metrisch", "metrische", "metrischen"];

/// Subjects of rules about a system of units.
pub(crate) const MEASURES: &[&str] = &[
    "unit",
    "units",
    "measure",
    "measures",
    "measurement",
    "measurements",
    "system",
    "einheiten",
];

/// Time zones in capitals.
pub(crate) const ZONES: &[&str] = &[
    "UTC", "GMT", "CET", "CEST", "EET", "BST", "PST", "PDT", "MST", "MDT", "CST", "CDT", "EST",
    "EDT", "JST", "KST", "IST", "AEST",
];

/// Days of the week, in English and in German.
pub(crate) const WEEKDAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
];

/// Months, in English and then in German.
pub(crate) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "januar",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
];

/// Numbers from 0 to 20, and then tens.
pub(crate) const NUMBERS: &[&str] = &[
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
];

/// Words that multiply the number before them.
pub(crate) const SCALES: &[(&str, u64)] = &[
    ("hundred", 100),
    ("thousand", 1_000),
    ("million", 1_000_000),
];

/// Units that follow numbers.
pub(crate) const UNITS: &[&str] = &[
    "dollars",
    "euros",
    "pounds",
    "yen",
    "percent",
    "seconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "months",
    "years",
    "spaces",
    "lines",
    "characters",
    "people",
    "times",
];
