//! Faults that are planted into good answers by rule. Each kind has three forms.

use super::pairs::Pair;
use memory_model::conventions::AgentConventions;
use summarize_escalation::{SummaryRequest, prompt};

/// Number of forms of each kind of fault.
pub(crate) const FORMS: usize = 3;

/// A kind of fault that is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Echo,
    Refusal,
    OtherLanguage,
    OtherConversation,
    InventedNames,
    RepeatedLines,
    Reasoning,
    Cut,
    NoFiles,
    EmptyForm,
}

impl Planted {
    pub(crate) const ALL: [(Self, &str, &str); 10] = [
        (
            Self::Echo,
            "echo",
            "the prompt; the prompt's messages with their tags; the beginning of the source",
        ),
        (
            Self::Refusal,
            "refusal",
            "an apology; a refusal; a remark that helps nobody",
        ),
        (
            Self::OtherLanguage,
            "other language",
            "the answer of a pair in another language",
        ),
        (
            Self::OtherConversation,
            "another conversation's summary",
            "the answer of another pair in the same language, or in any if there is none",
        ),
        (
            Self::InventedNames,
            "invented names",
            "every name changed; every second name changed; names with other endings",
        ),
        (
            Self::RepeatedLines,
            "repeated lines",
            "the first sentence again and again; the answer three times; a line of the form without end",
        ),
        (
            Self::Reasoning,
            "reasoning left in",
            "an open tag; plans in plain text; marks of a chat's template",
        ),
        (
            Self::Cut,
            "cut in the middle",
            "cut after a third, half and two thirds of the text, within a word",
        ),
        (
            Self::NoFiles,
            "`Files: none` against the log",
            "three writings of it",
        ),
        (
            Self::EmptyForm,
            "empty form",
            "the lines of the form alone; headings alone; the form with a list of subjects",
        ),
    ];

    /// The answer with this fault, in one of its forms; `None` if the pair cannot have it.
    pub(crate) fn plant(
        self,
        form: usize,
        pair: &Pair,
        all: &[Pair],
        request: &SummaryRequest<'_>,
        changes_files: bool,
    ) -> Option<String> {
        let answer = pair.answer.as_str();
        Some(match self {
            Self::Echo => {
                let prompt = prompt::render(request);
                match form {
                    0 => prompt.system,
                    1 => beginning(&prompt.user, request),
                    _ => beginning(&said(request), request),
                }
            }
            Self::Refusal => refusal(form, &pair.language).to_owned(),
            Self::OtherLanguage => {
                let others = all.iter().filter(|other| {
                    other.language != pair.language && other.answer.len() >= 300
                });
                nth(others, form, pair)?.answer.clone()
            }
            Self::OtherConversation => {
                let topic = topic(pair);
                let others = || all.iter().filter(move |other| self::topic(other) != topic);
                let alike = others().filter(|other| other.language == pair.language);
                nth(alike, form, pair).or_else(|| nth(others(), form, pair))?.answer.clone()
            }
            Self::InventedNames => invented(answer, form)?,
            Self::RepeatedLines => match form {
                0 => {
                    let end = answer.find(['.', '。']).map_or(answer.len(), |at| at + 1);
                    let first = answer.get(..end).unwrap_or(answer);
                    format!("{answer}\n{}", format!("{first}\n").repeat(5))
                }
                1 => format!("{answer}\n{answer}\n{answer}"),
                _ => format!("{answer}\n{}", "Files: none\n".repeat(40)),
            },
            Self::Reasoning => match form {
                0 => format!("<think>\nThe user wants a summary of the segment.\n{answer}"),
                1 => format!(
                    "Okay, I need to write a summary of this segment. Let me go through the messages and keep the format.\n\
                     I should end with the last line that the format asks for.\n\n{answer}"
                ),
                _ => format!("{answer}\n<|im_end|>\n<|im_start|>user"),
            },
            Self::Cut => cut(answer, form),
            Self::NoFiles => {
                if !changes_files {
                    return None;
                }
                let lines = answer.lines().filter(|line| !line.starts_with("Files:"));
                let kept: Vec<&str> = lines.collect();
                let none = ["Files: none", "**Files:** none were changed", "- Files: None."];
                format!("{}\n{}", kept.join("\n"), none.get(form)?)
            }
            Self::EmptyForm => match form {
                0 => "Files: none\nExpand for details about: everything".to_owned(),
                1 => "# Goal\n# Progress\n## Done\n## In Progress\n# Next Steps".to_owned(),
                _ => "Files: none\nExpand for details about:\n- Tariff\n- Status\n- Tool use errors\n- The rest".to_owned(),
            },
        })
    }
}

/// The first words of a pair's id, which pairs of one conversation share.
fn topic(pair: &Pair) -> &str {
    let topic = pair.id.split('-').next().unwrap_or_default();
    // Three agents were given the same task.
    if matches!(topic, "codex" | "gem") {
        "pomo"
    } else {
        topic
    }
}

/// One of several pairs, another for each form and pair.
fn nth<'a>(
    mut pairs: impl Iterator<Item = &'a Pair> + Clone,
    form: usize,
    of: &Pair,
) -> Option<&'a Pair> {
    let count = pairs.clone().count();
    let at = of.id.bytes().map(usize::from).sum::<usize>() + form * 7;
    pairs.nth(at.checked_rem(count)?)
}

fn refusal(form: usize, language: &str) -> &'static str {
    match (form, language) {
        (0, "ja") => "申し訳ありませんが、この内容を要約することはできません。",
        (1, "ja") => "この依頼には対応できません。ほかにお手伝いできることがあれば教えてください。",
        (0, "ko") => "죄송하지만 이 대화를 요약해 드릴 수 없습니다.",
        (1, "ko") => "이 요청은 도와드릴 수 없습니다. 다른 질문이 있으면 알려 주세요.",
        (0, "de") => "Es tut mir leid, aber dabei kann ich nicht helfen.",
        (1, "de") => {
            "Diese Anfrage kann ich leider nicht bearbeiten. Kann ich sonst etwas für Sie tun?"
        }
        (0, "es") => "Lo siento, pero no puedo ayudar con esa solicitud.",
        (1, "es") => "No es posible atender esta solicitud. ¿Hay algo más en lo que pueda ayudar?",
        (0, _) => "I'm sorry, but I can't assist with that request.",
        (1, _) => {
            "As a language model, I am not able to process this conversation. Is there anything else you would like?"
        }
        _ => {
            "I'm glad that you're having fun with your tests, and I'm here to help you out whenever you like!"
        }
    }
}

/// The beginning of a text, as long as the target allows.
fn beginning(text: &str, request: &SummaryRequest<'_>) -> String {
    let most = request.target_tokens.max(120);
    summarize_escalation::cut_to_tokens(text, most, request.estimator).unwrap_or_default()
}

/// What the source says, without tags.
fn said(request: &SummaryRequest<'_>) -> String {
    let mut out = String::new();
    for piece in request.source {
        match piece {
            summarize_escalation::Source::Summary(summary) => out.push_str(summary.text),
            summarize_escalation::Source::Message(entry) => entry.visit_texts(&mut |text| {
                out.push_str(&text);
                out.push('\n');
            }),
        }
    }
    out
}

/// The answer with other names; `None` if it has fewer than four.
fn invented(answer: &str, form: usize) -> Option<String> {
    let is_name = |word: &str| {
        word.len() >= 5
            && (word.contains(['_', '/']) || word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_uppercase())
                || word.as_bytes().windows(2).any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
                || word.split_once('.').is_some_and(|(a, b)| a.len() > 2 && (1..5).contains(&b.len()) && b.bytes().all(|b| b.is_ascii_lowercase())))
    };
    const STEMS: [&str; 8] = [
        "quorvex", "blintar", "zephmod", "drannick", "ulvostep", "kwimble", "torpsaro", "yalvint",
    ];
    let (mut out, mut count, mut word) = (String::new(), 0_usize, String::new());
    for c in answer.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-') {
            word.push(c);
            continue;
        }
        let name = word.trim_end_matches('.').to_owned();
        if is_name(&name) {
            count += 1;
            let stem = STEMS[count % STEMS.len()];
            let new = match form {
                0 => format!("src/{stem}_{count}.rs"),
                1 if count % 2 == 0 => name.clone(),
                1 => format!("{stem}_handler_{count}"),
                _ => format!("{stem}{count}Service.java"),
            };
            out.push_str(&new);
            out.push_str(word.get(name.len()..).unwrap_or_default());
        } else {
            out.push_str(&word);
        }
        word.clear();
        out.push(c);
    }
    let needed = if form == 1 { 8 } else { 4 };
    (count >= needed).then(|| out.trim_end().to_owned())
}

/// The answer, cut within a word.
fn cut(answer: &str, form: usize) -> String {
    let body = answer
        .find("\nFiles:")
        .or(answer.find("\nExpand for"))
        .unwrap_or(answer.len());
    let mut at = answer.floor_char_boundary(body * (form + 1) / (FORMS + 1));
    // Within a word or a run of characters.
    while at > 1 {
        let before = answer.get(..at).and_then(|text| text.chars().next_back());
        let after = answer.get(at..).and_then(|text| text.chars().next());
        if before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric) {
            break;
        }
        at = answer.floor_char_boundary(at - 1);
    }
    answer.get(..at).unwrap_or_default().to_owned()
}

/// Whether a source changes files, by its tool calls.
pub(crate) fn changes_files(
    request: &SummaryRequest<'_>,
    conventions: &dyn AgentConventions,
) -> bool {
    let mut failed = std::collections::BTreeSet::new();
    let mut changed = std::collections::BTreeSet::new();
    for piece in request.source {
        let summarize_escalation::Source::Message(entry) = piece else {
            continue;
        };
        for part in &entry.parts {
            match part {
                memory_model::Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => {
                    let files = conventions.tool_use(name, arguments.as_str()).files;
                    if files
                        .iter()
                        .any(|file| file.changed && !file.path.starts_with("/tmp/"))
                    {
                        changed.insert(id.as_str());
                    }
                }
                memory_model::Part::ToolResult {
                    call_id,
                    is_error: Some(true),
                    ..
                } => {
                    failed.insert(call_id.as_str());
                }
                _ => {}
            }
        }
    }
    changed.iter().any(|id| !failed.contains(id))
}
