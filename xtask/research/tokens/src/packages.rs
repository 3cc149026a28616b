//! Which texts inside Debian packages a fit learns from, and which it is only measured on.

/// Text inside Debian packages, unpacked under one root: group, folder, what a file's name ends in.
pub(super) const PACKAGED: &[(&str, &str, &str)] = &[
    ("zh-tw", "usr/share/libreoffice/help/zh-TW", ".html"),
    ("zh-tw", "usr/share/doc/debian-handbook/html/zh-TW", ".html"),
    ("zh-tw", "usr/share/debian-reference", ".zh-tw.html"),
    ("zh-tw", "usr/share/doc/maint-guide-zh-tw/html", ".html"),
    ("zh-tw", "usr/lib/libreoffice/program/resource/zh_TW", ".mo"),
    ("zh-cn", "usr/share/libreoffice/help/zh-CN", ".html"),
    ("zh-cn", "usr/share/doc/debian-handbook/html/zh-CN", ".html"),
    ("zh-cn", "usr/share/debian-reference", ".zh-cn.html"),
    ("zh-cn", "usr/share/help/zh_CN", ".page"),
    ("ja", "usr/share/libreoffice/help/ja", ".html"),
    ("ja", "usr/share/doc/debian-handbook/html/ja-JP", ".html"),
    ("ja", "usr/share/debian-reference", ".ja.html"),
    ("ja", "usr/share/doc/aptitude/html/ja", ".html"),
    ("ko", "usr/share/libreoffice/help/ko", ".html"),
    ("ko", "usr/share/doc/debian-handbook/html/ko-KR", ".html"),
    ("ko", "usr/share/help/ko", ".page"),
    ("ru", "usr/share/developers-reference/ru", ".html"),
    ("ru", "usr/share/doc/debian-handbook/html/ru-RU", ".html"),
    ("ru", "usr/share/help/ru", ".page"),
    ("ar", "usr/share/doc/debian-handbook/html/ar-MA", ".html"),
    ("ar", "usr/lib/libreoffice/program/resource/ar", ".mo"),
    ("hi", "usr/share/libreoffice/help/hi", ".html"),
    ("hi", "usr/lib/libreoffice/program/resource/hi", ".mo"),
    ("hi", "usr/share/help/hi", ".page"),
    ("mr", "usr/share/help/mr", ".page"),
    ("he", "usr/lib/libreoffice/program/resource/he", ".mo"),
    ("uk", "usr/lib/libreoffice/program/resource/uk", ".mo"),
    ("uk", "usr/share/help/uk", ".page"),
    ("th", "usr/lib/libreoffice/program/resource/th", ".mo"),
    ("bn", "usr/lib/libreoffice/program/resource/bn", ".mo"),
    ("ta", "usr/share/help/ta", ".page"),
    ("te", "usr/share/help/te", ".page"),
    ("gu", "usr/share/help/gu", ".page"),
    ("tr", "usr/lib/libreoffice/program/resource/tr", ".mo"),
    ("fa", "usr/share/doc/debian-handbook/html/fa-IR", ".html"),
    ("el", "usr/share/libreoffice/help/el", ".html"),
    ("el", "usr/share/doc/debian-handbook/html/el-GR", ".html"),
    ("vi", "usr/share/libreoffice/help/vi", ".html"),
    ("vi", "usr/share/doc/debian-handbook/html/vi-VN", ".html"),
    ("de", "usr/share/libreoffice/help/de", ".html"),
    ("de", "usr/share/doc/debian-handbook/html/de-DE", ".html"),
    ("fr", "usr/share/doc/debian-handbook/html/fr-FR", ".html"),
    ("es", "usr/share/doc/debian-handbook/html/es-ES", ".html"),
    ("pt", "usr/share/doc/debian-handbook/html/pt-BR", ".html"),
    ("it", "usr/share/doc/debian-handbook/html/it-IT", ".html"),
    ("pl", "usr/share/doc/debian-handbook/html/pl-PL", ".html"),
    ("cs", "usr/share/help/cs", ".page"),
    ("fi", "usr/share/help/fi", ".page"),
    ("hu", "usr/share/help/hu", ".page"),
    ("id", "usr/share/doc/debian-handbook/html/id-ID", ".html"),
    ("en", "usr/share/doc/debian-handbook/html/en-US", ".html"),
    ("en", "usr/share/debian-reference", ".en.html"),
    ("en", "usr/share/help/C", ".page"),
    ("en", "usr/share/doc/git-doc", ".txt"),
    ("html", "usr/share/doc/debian-handbook/html/en-US", ".html+"),
    ("python", "usr/lib/python3.11", ".py"),
    ("go", "usr/share/go-1.19/src", ".go"),
    ("rust", "usr/share/cargo/registry", ".rs"),
    ("markdown", "usr/share/cargo/registry", ".md"),
    ("toml", "usr/share/cargo/registry", ".toml"),
    ("typescript", "usr/share/nodejs", ".ts"),
    ("javascript", "usr/share/nodejs", ".js"),
    ("json", "usr/share/nodejs", ".json"),
    ("json", "usr/share/iso-codes/json", ".json"),
    (
        "zh-tw",
        "usr/share/wordpress/wp-content/languages",
        "zh_TW.mo",
    ),
    (
        "zh-cn",
        "usr/share/wordpress/wp-content/languages",
        "zh_CN.mo",
    ),
    ("ja", "usr/share/wordpress/wp-content/languages", "ja.mo"),
    ("ko", "usr/share/wordpress/wp-content/languages", "ko_KR.mo"),
    ("ru", "usr/share/wordpress/wp-content/languages", "ru_RU.mo"),
    ("ar", "usr/share/wordpress/wp-content/languages", "ar.mo"),
];

/// The interface texts of MediaWiki: language of the file, group.
pub(super) const MEDIAWIKI: &[(&str, &str)] = &[
    ("zh-hant", "zh-tw"),
    ("zh-hans", "zh-cn"),
    ("ja", "ja"),
    ("ko", "ko"),
    ("ru", "ru"),
    ("ar", "ar"),
    ("hi", "hi"),
    ("uk", "uk"),
    ("th", "th"),
    ("bn", "bn"),
    ("ta", "ta"),
    ("te", "te"),
    ("gu", "gu"),
    ("mr", "mr"),
    ("he", "he"),
    ("fa", "fa"),
    ("el", "el"),
    ("tr", "tr"),
    ("vi", "vi"),
    ("de", "de"),
    ("fr", "fr"),
    ("es", "es"),
    ("pt", "pt"),
    ("it", "it"),
    ("pl", "pl"),
    ("cs", "cs"),
    ("fi", "fi"),
    ("hu", "hu"),
    ("id", "id"),
    ("ka", "ka"),
    ("hy", "hy"),
    ("am", "am"),
    ("km", "km"),
    ("lo", "lo"),
    ("my", "my"),
    ("si", "si"),
    ("kn", "kn"),
    ("ml", "ml"),
    ("pa", "pa"),
    ("be", "be"),
    ("bg", "bg"),
    ("sr-ec", "sr"),
    ("nl", "nl"),
    ("sv", "sv"),
    ("ro", "ro"),
];

/// The programs and manuals that are never fitted on: other writers, in the languages of the corpus and in others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Django,
    Tutorials,
    Evolution,
    Freeciv,
    Manuals,
}

/// Which of them there are: language, its name in the packages, what.
const HELD: &[(&str, &str, &[Held])] = {
    use Held::{Django, Evolution, Freeciv, Manuals, Tutorials};
    &[
        ("ar", "ar", &[Django, Evolution, Freeciv]),
        ("bn", "bn", &[Django, Evolution]),
        ("de", "de", &[Django, Tutorials, Evolution, Freeciv]),
        ("el", "el", &[Django, Tutorials, Evolution, Freeciv]),
        ("es", "es", &[Django, Tutorials, Evolution, Freeciv]),
        ("fa", "fa", &[Django, Tutorials, Evolution, Freeciv]),
        ("fr", "fr", &[Django, Tutorials, Evolution, Freeciv]),
        ("he", "he", &[Django, Evolution, Freeciv]),
        ("hi", "hi", &[Django, Evolution]),
        (
            "ja",
            "ja",
            &[Django, Tutorials, Evolution, Freeciv, Manuals],
        ),
        ("ka", "ka", &[Django, Evolution]),
        ("ko", "ko", &[Django, Tutorials, Evolution, Freeciv]),
        ("pl", "pl", &[Django, Tutorials, Evolution, Freeciv]),
        (
            "ru",
            "ru",
            &[Django, Tutorials, Evolution, Freeciv, Manuals],
        ),
        ("ta", "ta", &[Django, Evolution]),
        ("th", "th", &[Django, Evolution]),
        ("tr", "tr", &[Django, Evolution, Freeciv]),
        ("uk", "uk", &[Django, Tutorials, Evolution, Freeciv]),
        ("vi", "vi", &[Django, Tutorials, Evolution]),
        (
            "zh-cn",
            "zh_CN",
            &[Django, Tutorials, Evolution, Freeciv, Manuals],
        ),
        (
            "zh-tw",
            "zh_TW",
            &[Django, Tutorials, Evolution, Freeciv, Manuals],
        ),
    ]
};

/// Never fitted on: group, folder, what a file's name ends in.
pub(super) fn held() -> Vec<(&'static str, String, String)> {
    let mut out = Vec::new();
    for &(group, locale, kinds) in HELD {
        for kind in kinds {
            let messages = format!("usr/share/locale/{locale}/LC_MESSAGES");
            let (folder, ending) = match kind {
                Held::Django => {
                    // Django names Chinese by its script.
                    let locale = match locale {
                        "zh_CN" => "zh_Hans",
                        "zh_TW" => "zh_Hant",
                        other => other,
                    };
                    let folder = "usr/lib/python3/dist-packages/django".to_owned();
                    (folder, format!("locale/{locale}/LC_MESSAGES/django.mo"))
                }
                Held::Tutorials => (
                    "usr/share/inkscape/tutorials".to_owned(),
                    format!(".{locale}.svg"),
                ),
                Held::Evolution => (messages, "evolution.mo".to_owned()),
                Held::Freeciv => (messages, "freeciv-core.mo".to_owned()),
                Held::Manuals => (format!("usr/share/man/{locale}"), String::new()),
            };
            out.push((group, folder, ending));
        }
    }
    out
}
