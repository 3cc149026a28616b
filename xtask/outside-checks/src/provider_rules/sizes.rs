//! How many and how large pictures, documents and requests may be.

use serde_json::Value;

use super::finding::{Finding, Rule, rule};
use super::shape::Judge;

/// The rules on sizes. They hold for the provider's smallest models.
pub const RULES: &[Rule] = &[
    rule(
        "request-bytes",
        "a request has at most 32 MB (Anthropic, page on the API: request size limits), 50 MB (OpenAI, guide on images) or 20 MB (Gemini, page on images)",
    ),
    rule(
        "picture-count",
        "a request has at most 100 pictures (Anthropic, page on vision; error: «too many images and documents»), 500 (OpenAI) or 3600 (Gemini)",
    ),
    rule(
        "picture-side",
        "a side of a picture has at most 8000 pixels (Anthropic; error: «image dimensions exceed max allowed size: 8000 pixels»)",
    ),
    rule(
        "many-pictures",
        "of more than 20 pictures, no side has more than 2000 pixels (Anthropic; error: «image dimensions exceed max allowed size for many-image requests: 2000 pixels»)",
    ),
    rule(
        "picture-bytes",
        "a picture has at most 5 MiB of base64 (Anthropic; error: «image exceeds 5 MB maximum»), 20 MB (OpenAI)",
    ),
    rule(
        "document-pages",
        "the documents have at most 100 pages (Anthropic, page on PDF; error: «A maximum of 100 PDF pages may be provided») or 1000 (Gemini)",
    ),
];

struct Most {
    bytes: usize,
    pictures: usize,
    picture_bytes: usize,
    pages: usize,
    claude: bool,
}

fn most(provider: &str) -> Option<Most> {
    let most = |bytes, pictures, picture_bytes, pages| Most {
        bytes,
        pictures,
        picture_bytes,
        pages,
        claude: provider == "anthropic",
    };
    match provider {
        "anthropic" => Some(most(32_000_000, 100, 5 << 20, 100)),
        "openai" | "responses" => Some(most(50_000_000, 500, 20_000_000, usize::MAX)),
        "gemini" => Some(most(20_000_000, 3_600, usize::MAX, 1_000)),
        _ => None,
    }
}

/// Checks the sizes of a request of `anthropic`, `openai`, `responses` or `gemini`. Pages are counted in documents
/// without compressed objects, and sides in PNG.
pub fn sizes(provider: &str, request: &Value) -> Vec<Finding> {
    let mut judge = Judge::default();
    let Some(most) = most(provider) else {
        judge.report("", "request-bytes", format!("no provider `{provider}`"));
        return judge.findings;
    };
    let bytes = request.to_string().len();
    let mut media = Vec::new();
    media_of("", request, &mut media);
    judge.demand(
        bytes <= most.bytes,
        "",
        "request-bytes",
        &format!("{bytes}"),
    );
    let pictures: Vec<_> = media.iter().filter(|(_, data)| !is_pdf(data)).collect();
    let pages: usize = media
        .iter()
        .filter(|(_, data)| is_pdf(data))
        .map(|(_, data)| pages(data))
        .sum();
    judge.demand(
        pages <= most.pages,
        "",
        "document-pages",
        &format!("{pages}"),
    );
    let count = pictures.len() + if most.claude { pages } else { 0 };
    judge.demand(
        count <= most.pictures,
        "",
        "picture-count",
        &format!("{count}"),
    );
    for (path, data) in &pictures {
        let length = data.len();
        judge.demand(
            length <= most.picture_bytes,
            path,
            "picture-bytes",
            &format!("{length}"),
        );
        let side = side(data);
        let detail = format!("{side} pixels of {} pictures", pictures.len());
        judge.demand(!most.claude || side <= 8_000, path, "picture-side", &detail);
        let few = pictures.len() <= 20 || side <= 2_000;
        judge.demand(!most.claude || few, path, "many-pictures", &detail);
    }
    judge.findings
}

/// Adds the base64 of every picture and document, by their fields in the four shapes.
fn media_of(path: &str, value: &Value, media: &mut Vec<(String, String)>) {
    let fields = ["data", "url", "image_url", "file_data", "result"];
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{path}/{name}");
                match value.as_str().filter(|_| fields.contains(&name.as_str())) {
                    Some(text) => {
                        let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
                        if ["iVBORw0KGgo", "JVBERi"]
                            .iter()
                            .any(|begin| data.starts_with(begin))
                        {
                            media.push((path, data.to_owned()));
                        }
                    }
                    None => media_of(&path, value, media),
                }
            }
        }
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                media_of(&format!("{path}/{at}"), item, media);
            }
        }
        _ => {}
    }
}

fn is_pdf(data: &str) -> bool {
    data.starts_with("JVBERi")
}

/// The pages of a document, by the word that begins each.
fn pages(data: &str) -> usize {
    let text = String::from_utf8_lossy(&bytes(data)).into_owned();
    let words = text.split("/Type").skip(1).map(str::trim_start);
    words
        .filter(|word| word.starts_with("/Page") && !word.starts_with("/Pages"))
        .count()
}

/// The longer side of a PNG.
fn side(data: &str) -> u32 {
    let head = bytes(data.get(..32).unwrap_or_default());
    let four = |at: usize| {
        let four = head.get(at..at + 4).unwrap_or(&[0; 4]);
        four.iter()
            .fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
    };
    four(16).max(four(20))
}

fn bytes(base64: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |byte: u8| alphabet.iter().position(|one| *one == byte);
    let digits: Vec<u32> = base64
        .bytes()
        .filter_map(digit)
        .map(|digit| digit as u32)
        .collect();
    let mut out = Vec::new();
    for four in digits.chunks(4) {
        let held = (0..4).fold(0, |held, at| held << 6 | four.get(at).copied().unwrap_or(0));
        let three = held.to_be_bytes();
        out.extend(three.get(1..four.len()).unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn rules(provider: &str, request: &Value) -> BTreeSet<&'static str> {
        sizes(provider, request)
            .iter()
            .map(|one| one.rule)
            .collect()
    }

    #[test]
    fn each_rule_fires() {
        // 2560 x 1440 and 9 x 8001 pixels.
        let wide = "iVBORw0KGgoAAAANSUhEUgAACgAAAAWg";
        let tall = "iVBORw0KGgoAAAANSUhEUgAAAAkAAB9B";
        let page = "JVBERi0xLjQgL1R5cGUgL1BhZ2VzIC9UeXBlL1BhZ2UK";
        let image =
            |data: &str| json!({"type": "image", "source": {"type": "base64", "data": data}});
        let of = |blocks: Vec<Value>| json!({"messages": [{"role": "user", "content": blocks}]});
        let some = |rules: &[&'static str]| rules.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!((side(wide), side(tall), pages(page)), (2_560, 8_001, 1));
        assert_eq!(rules("anthropic", &of(vec![image(wide); 20])), some(&[]));
        assert_eq!(
            rules("anthropic", &of(vec![image(wide); 21])),
            some(&["many-pictures"])
        );
        assert_eq!(
            rules("anthropic", &of(vec![image(tall)])),
            some(&["picture-side"])
        );
        let mut mixed = vec![image("iVBORw0KGgo="); 60];
        mixed.extend(vec![image(page); 41]);
        assert_eq!(
            rules("anthropic", &of(mixed.clone())),
            some(&["picture-count"])
        );
        assert_eq!(rules("openai", &of(mixed)), some(&[]));
        assert_eq!(
            rules("anthropic", &of(vec![image(page); 101])),
            some(&["picture-count", "document-pages"])
        );
        let large = format!("iVBORw0KGgo{}", "A".repeat(20_000_000));
        let inline = json!({"contents": [{"parts": [{"inlineData": {"data": large}}]}]});
        assert_eq!(rules("gemini", &inline), some(&["request-bytes"]));
        let url = json!({"input": [{"image_url": format!("data:image/png;base64,{large}")}]});
        assert_eq!(rules("responses", &url), some(&["picture-bytes"]));
        assert_eq!(RULES.len(), 6);
    }
}
