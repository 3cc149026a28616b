//! Mails, notes and chats, in several languages.

use extractive_summarizer::{ExtractiveSummarizer, Source};
use memory_model::Message;
use token_estimate::{Calibrated, TokenEstimator};

use crate::extract::short_form;
use crate::log;

fn extract(messages: Vec<Message>, target: u64) -> String {
    let log = log(messages, &Calibrated::O200k);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let text = ExtractiveSummarizer::new().extract(&source, target, &Calibrated::O200k);
    assert!(Calibrated::O200k.text(&text) <= target, "{text}");
    text
}

/// A mail as programs wrap it, of about 140 tokens.
const MAIL: &str = "Hi everybody,

I hope that you all had a nice weekend and that the weather was as good
where you are as it was here. As some of you may have noticed, the nightly
import was slow again, and I had a look at it with Jana yesterday evening
after the others had left. It turned out that the disk of db-prod-03 was
almost full. The ticket is OPS-4417. Please do not restart the importer
before the old partitions have been dropped, or we lose the queue. I will
write again when I know more about it.

Many thanks and best wishes to all of you,
Marta";

#[test]
fn of_a_mail_the_number_the_host_and_the_instruction_stay() {
    let tokens = Calibrated::O200k.text(MAIL);
    let text = extract(vec![Message::user(MAIL)], tokens / 2);
    for word in [
        "OPS-4417",
        "db-prod-03",
        "do not restart the importer before the old partitions have been dropped",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("nice weekend"), "{text}");
}

/// One instruction with a name in it, between sentences that say little, in several scripts.
#[test]
fn the_same_holds_in_other_languages() {
    for mail in [
        "Guten Morgen zusammen, ich hoffe, ihr hattet ein schönes Wochenende. Gestern war das Wetter bei uns sehr gut, und wir waren lange draußen. Bitte startet srv-web-12 erst neu, wenn das Ticket NET-881 geschlossen ist. Ich melde mich wieder, sobald es etwas Neues gibt. Viele Grüße an alle und bis bald.",
        "皆さん、おはようございます。週末はいかがでしたか。昨日はとても良い天気で、長い間外にいました。チケット NET-881 が閉じられるまで srv-web-12 を再起動しないでください。新しいことがわかったらまた連絡します。よろしくお願いします。",
        "여러분 안녕하세요, 주말 잘 보내셨나요. 어제는 날씨가 아주 좋아서 오랫동안 밖에 있었습니다. 티켓 NET-881 이 닫히기 전에는 srv-web-12 를 다시 시작하지 마세요. 새로운 소식이 있으면 다시 연락드리겠습니다. 감사합니다.",
        "Всем доброе утро, надеюсь, вы хорошо провели выходные. Вчера у нас была очень хорошая погода, и мы долго гуляли. Не перезапускайте srv-web-12, пока заявка NET-881 не закрыта. Я напишу, когда будет что-то новое. Всем привет и до скорого.",
        "صباح الخير للجميع، أتمنى أنكم قضيتم عطلة سعيدة. كان الطقس جميلا جدا أمس وبقينا في الخارج طويلا. لا تعيدوا تشغيل srv-web-12 قبل إغلاق التذكرة NET-881. سأكتب لكم عندما أعرف المزيد. مع أطيب التحيات.",
        "सभी को सुप्रभात, आशा है आपका सप्ताहांत अच्छा रहा। कल मौसम बहुत अच्छा था और हम देर तक बाहर रहे। टिकट NET-881 बंद होने तक srv-web-12 को फिर से चालू न करें। जब कुछ नया होगा तो मैं फिर लिखूँगा। सभी को शुभकामनाएँ।",
        "大家早上好，希望你们周末过得愉快。昨天天气很好，我们在外面待了很久。在工单 NET-881 关闭之前，不要重启 srv-web-12。有新消息我会再写信。祝大家一切顺利。",
    ] {
        let text = extract(vec![Message::user(mail)], Calibrated::O200k.text(mail) / 2);
        for word in ["srv-web-12", "NET-881"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// A correction stands beside what it corrects, also in an extract of extracts.
#[test]
fn what_was_corrected_names_the_correction() {
    let mut messages = vec![Message::user("The staging server listens on port 8080.")];
    for n in 0..12 {
        messages.push(Message::assistant(format!(
            "Step {n} is done, and nothing else came up in it."
        )));
    }
    messages.push(Message::user(
        "Correction: the staging server listens on port 9090.",
    ));
    let text = extract(messages, 160);
    let note = "[1] User: The staging server listens on port 8080. (later: [14]: 9090)";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("port 9090"), "{text}");
    let source = [summary((1, 14), &text)];
    let again = ExtractiveSummarizer::new().extract(&source, 120, &Calibrated::O200k);
    assert!(
        again.contains(note) && again.contains("port 9090"),
        "{again}"
    );
}

fn summary(range: (u32, u32), text: &str) -> Source<'_> {
    let [first, last] = [range.0, range.1].map(memory_model::Seq);
    Source::Summary(extractive_summarizer::SummarySource {
        id: "sum_1",
        range: memory_model::SeqRange::new(first, last).unwrap(),
        depth: 0,
        text,
        ranks: None,
        tokens: Calibrated::O200k.text(text),
        earliest_at: memory_model::Timestamp::default(),
        latest_at: memory_model::Timestamp::default(),
        provisional: false,
    })
}

/// All rules of a first message are kept between long talk, at every level, and in their latest form.
#[test]
fn rules_are_kept_before_talk_and_in_their_latest_form() {
    let parts = [
        "lexer", "parser", "reader", "writer", "printer", "linter", "server", "client", "cache",
        "store", "index", "queue", "clock", "logger", "loader",
    ];
    let rules = parts.map(|part| format!("- Never change the {part} without a test of its own."));
    let talk = |n: u32| {
        let said =
            format!("That was a nice talk about holiday number {n}, and I look forward to more.");
        [
            Message::user(said.clone()),
            Message::assistant(format!("I enjoyed it as well. {said}")),
        ]
    };
    let first = format!("Hello, here is how we work:\n{}", rules.join("\n"));
    let mut messages = vec![Message::user(first), Message::assistant("Understood.")];
    messages.extend((0..20).flat_map(talk));
    messages.push(Message::user(
        "It rained the whole week here, but the garden needs it after all of the dry months. From now on, \
         start the names of branches with 'dev/'. Do you like gardens? We have one with old trees.",
    ));
    messages.extend((20..40).flat_map(talk));
    let below = extract(messages, 600);
    for rule in &rules {
        assert!(below.contains(&rule[2..]), "{rule}: {below}");
    }
    assert!(
        below.contains("start the names of branches with 'dev/'"),
        "{below}"
    );
    let mut messages: Vec<Message> = (40..60).flat_map(talk).collect();
    messages.insert(
        8,
        Message::user("Start the names of branches with 'work/', not as I said before. I hope that this is fine for you."),
    );
    let next = extract(messages, 300);
    // The second log counts on from the first.
    let next: Vec<String> = next
        .lines()
        .filter(|line| line.contains("work/"))
        .map(str::to_owned)
        .collect();
    let next = format!("[100] {}", next[0].split_once("] ").unwrap().1);
    let source = [summary((1, 83), &below), summary((84, 124), &next)];
    let above = ExtractiveSummarizer::new().extract(&source, 400, &Calibrated::O200k);
    for rule in &rules {
        assert!(above.contains(&rule[2..]), "{rule}: {above}");
    }
    assert!(above.contains("with 'work/'"), "{above}");
    let stale = above.lines().filter(|line| line.contains("'dev/'"));
    for line in stale {
        assert!(line.ends_with("(later: [100])"), "{above}");
    }
}

/// What an assistant explains at length is kept line by line, and what it only announces comes last.
#[test]
fn an_explanation_is_kept_before_announcements() {
    let causes: Vec<String> = (1..9)
        .map(|n| format!("- Cause {n}: the queue of shard {n} is read before its lock is taken."))
        .collect();
    let mut messages = vec![Message::user("Why is it slow?")];
    for n in 0..40 {
        messages.push(Message::assistant(format!(
            "Now let me check the file of shard {n} more closely."
        )));
        messages.push(Message::user("Go on."));
    }
    messages.push(Message::assistant(format!(
        "It is slow for eight reasons:\n{}",
        causes.join("\n")
    )));
    messages.push(Message::user("Thanks."));
    for n in 0..20 {
        messages.push(Message::assistant(format!(
            "Let me look at the log of day {n} as well."
        )));
        messages.push(Message::user("Go on."));
    }
    let text = extract(messages, 700);
    for cause in &causes {
        assert!(text.contains(cause.as_str()), "{cause}: {text}");
    }
}

const THINGS: [(&str, &str, u32); 12] = [
    ("boiler", "Marsden", 1984),
    ("gutter", "Okafor", 2011),
    ("chimney", "Lindqvist", 1937),
    ("cellar", "Petrov", 1902),
    ("veranda", "Almeida", 1968),
    ("staircase", "Novak", 1955),
    ("greenhouse", "Fontaine", 2003),
    ("garage", "Hoshino", 1991),
    ("attic", "Brandt", 1949),
    ("fountain", "Iversen", 1926),
    ("pantry", "Castellan", 1973),
    ("workshop", "Dvorak", 1960),
];

/// Somebody asks about the parts of a house, and the assistant explains each at length.
fn house() -> Vec<Message> {
    let asked = |(thing, who, year): (&str, &str, u32)| {
        let advice = (1..30).map(|n| {
            format!(
                "{n}. Look at the {thing} from all sides because its materials age, and note in list {n} \
                 which of the repairs can wait until the next season."
            )
        });
        [
            Message::user(format!(
                "I want to make sure that I get this right, can you help me? The {thing} was built in {year} \
                 by {who}, and I hope to repair it."
            )),
            Message::assistant(format!(
                "Certainly! Here is how to repair it:\n{}",
                advice.collect::<Vec<_>>().join("\n")
            )),
        ]
    };
    THINGS.into_iter().flat_map(asked).collect()
}

/// Without calls of tools users' statements come before explanations, in shorter forms too, and in few words.
#[test]
fn in_talk_users_words_come_before_explanations() {
    let log = log(house(), &Calibrated::O200k);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let body = ExtractiveSummarizer::new().extract_ranked(&source, 1_500, &Calibrated::O200k);
    for text in [body.text(), &short_form(&body, 600)] {
        for (thing, who, year) in THINGS {
            let stated = format!("The {thing} was built in {year} by {who}");
            assert!(text.contains(&stated), "{stated}: {text}");
        }
    }
    assert!(
        body.text().contains("Look at the workshop"),
        "{}",
        body.text()
    );
}

#[test]
fn an_assistant_that_says_the_same_each_time_says_nothing() {
    let mut messages = Vec::new();
    for n in 1..=4 {
        messages.push(Message::user(format!("The gate {n} is closed on Mondays.")));
        messages.push(Message::assistant("Understood, I keep it in mind."));
    }
    messages.push(Message::assistant("Fine."));
    let extract = extract(messages, 120);
    assert!(!extract.contains("in mind"), "{extract}");
    assert!(
        extract.contains("gate 4") && extract.contains("Fine."),
        "{extract}"
    );
}
