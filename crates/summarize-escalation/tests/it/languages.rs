//! Languages: a summary in another language than the conversation is refused, where both are clear.

use memory_model::Message;
use summarize_escalation::{Source, SummaryRequest, measure, testing};
use token_estimate::HeuristicEstimator;

/// One conversation's worth of prose about the same thing, by language.
const PROSE: [(&str, &str); 14] = [
    (
        "English",
        "The parser was repaired yesterday and all tests are green again. What remains is the description of the new options, which somebody should read before it is published.",
    ),
    (
        "German",
        "Der Parser wurde gestern repariert und alle Tests laufen wieder durch. Was noch fehlt, ist die Beschreibung der neuen Optionen, die vor der Veröffentlichung jemand lesen sollte.",
    ),
    (
        "French",
        "L'analyseur a été réparé hier et tous les tests passent de nouveau. Il reste la description des nouvelles options, que quelqu'un devrait lire avant la publication.",
    ),
    (
        "Spanish",
        "El analizador fue reparado ayer y todas las pruebas pasan otra vez. Falta la descripción de las nuevas opciones, que alguien debería leer antes de publicarla.",
    ),
    (
        "Dutch",
        "De parser is gisteren hersteld en alle tests slagen weer. Wat nog ontbreekt is de beschrijving van de nieuwe opties, die iemand moet lezen voordat ze wordt gepubliceerd.",
    ),
    (
        "Polish",
        "Parser został wczoraj naprawiony i wszystkie testy znowu przechodzą. Brakuje jeszcze opisu nowych opcji, który ktoś powinien przeczytać przed publikacją.",
    ),
    (
        "Swedish",
        "Tolken lagades i går och alla tester går igenom igen. Det som återstår är beskrivningen av de nya inställningarna, som någon borde läsa innan den publiceras.",
    ),
    (
        "Turkish",
        "Ayrıştırıcı dün onarıldı ve bütün testler yeniden geçiyor. Geriye yeni seçeneklerin açıklaması kaldı, yayımlanmadan önce birisinin onu okuması gerekiyor.",
    ),
    (
        "Vietnamese",
        "Bộ phân tích đã được sửa hôm qua và tất cả các bài kiểm tra lại chạy tốt. Việc còn lại là mô tả các tùy chọn mới, ai đó nên đọc trước khi công bố.",
    ),
    (
        "Russian",
        "Вчера разборщик был исправлен, и все проверки снова проходят. Осталось описание новых настроек, которое кто-нибудь должен прочитать перед публикацией.",
    ),
    (
        "Ukrainian",
        "Учора розбирач було виправлено, і всі перевірки знову проходять. Залишився опис нових налаштувань, який хтось має прочитати перед оприлюдненням.",
    ),
    (
        "Japanese",
        "昨日パーサーが修正され、すべてのテストが再び通るようになりました。残っているのは新しい設定の説明で、公開する前に誰かが読むべきです。",
    ),
    (
        "Korean",
        "어제 파서를 고쳤고 모든 테스트가 다시 통과합니다. 남은 것은 새 설정에 대한 설명이며, 공개하기 전에 누군가 읽어야 합니다.",
    ),
    (
        "Chinese",
        "解析器昨天已经修好，所有测试又都通过了。剩下的是新选项的说明，在发布之前应该有人读一遍。",
    ),
];

/// Code and commands, which are no language.
const CODE: &str = "cd /code/crumb && cargo test -p crumb --lib next_token\nfn next_token(&mut self) -> \
                    Option<Token> { self.skip_line(); None }\nerror[E0502]: cannot borrow `tokens`\n";

fn differs(said: &[&str], text: &str) -> bool {
    let messages = said.iter().enumerate().map(|(n, text)| match n % 2 {
        0 => Message::user(*text),
        _ => Message::assistant(*text),
    });
    let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    measure(
        text,
        &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4),
    )
    .other_language
}

#[test]
fn every_pair_of_languages_is_distinguished() {
    let mut wrong = Vec::new();
    for (said_in, said) in PROSE {
        for (told_in, told) in PROSE {
            if differs(&[said], told) != (said_in != told_in) {
                wrong.push(format!("{said_in} told in {told_in}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:?}", wrong.len());
}

#[test]
fn code_is_no_language() {
    for (language, prose) in PROSE {
        let told = format!("{prose} `next_token` in /code/crumb/src/lexer.rs: {CODE}");
        assert!(!differs(&[prose], &told), "{language}");
        assert!(!differs(&[&told, CODE], prose), "{language}");
        // Nothing is known of a conversation of nothing but code that Latin letters would tell.
        if told.is_ascii() {
            assert!(!differs(&[CODE], &told), "{language}");
        }
    }
    assert!(!differs(&[PROSE[0].1], CODE));
}

/// Whoever speaks, and whatever was spoken before: each of the languages is one of the
/// conversation.
#[test]
fn a_conversation_may_have_several_languages() {
    let (english, japanese) = (PROSE[0].1, PROSE[11].1);
    for told in [english, japanese] {
        assert!(!differs(&[japanese, english], told), "{told}");
    }
    assert!(differs(&[japanese, english], PROSE[5].1));
}
