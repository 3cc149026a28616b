use super::names::{alike, is_date};
use super::*;
use crate::{Calibrated, ErrorKind, SafetyFactor, TokenEstimator};

#[test]
fn every_built_in_row_is_sane() {
    let table = ModelTable::builtin();
    let rows: Vec<_> = table.models().collect();
    assert!(rows.len() > 150, "{} rows", rows.len());
    for (n, row) in rows.iter().enumerate() {
        let name = &row.name;
        row.check().unwrap();
        assert!(is_date(&row.as_of) && *row.as_of <= *"2026-11-23", "{name}");
        for other in &rows[..n] {
            assert!(!alike(name, &other.name), "{name} and {}", other.name);
        }
        assert_eq!(**name, name.to_lowercase(), "{name}");
        assert!(!name.contains('/'), "{name}");
        assert!(
            row.largest_input(row.max_output.min(row.context_window / 4)) > 0,
            "{name}"
        );
        // An input limit has an effect only below the window.
        let limit = row.max_input.unwrap_or(row.context_window - 1);
        assert!(limit < row.context_window, "{name}");
        assert!((4_096..=10_000_000).contains(&row.context_window), "{name}");
        assert!(row.max_output >= 4_096, "{name}");
        assert!(row.tools_overhead.unwrap_or_default() < 1_000, "{name}");
    }
}

#[test]
fn every_row_is_found_by_its_name_with_a_provider_and_with_a_date() {
    for row in table::MODELS {
        for form in ["{}", "openrouter/provider/{}", "provider/{}"] {
            let name = form.replace("{}", &row.name);
            assert_eq!(get(&name).unwrap().name, row.name, "{name}");
        }
        assert_eq!(get(&row.name.to_uppercase()).unwrap().name, row.name);
        if !row.name.ends_with("-latest") && !row.name.contains("-20") {
            for date in ["20260731", "2026-07-31"] {
                let name = format!("{}-{date}", row.name);
                assert_eq!(get(&name).unwrap().name, row.name, "{name}");
            }
        }
    }
}

/// Names as providers and gateways write them.
#[test]
fn names_in_use_mean_their_models() {
    for (name, expected) in [
        ("openai/gpt-5", "gpt-5"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5.1-chat-latest", "gpt-5.1-chat"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("azure/gpt-4-1", "gpt-4.1"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("gemini/gemini-flash-latest", "gemini-flash-latest"),
        (
            "meta-llama/Llama-3.3-70B-Instruct",
            "llama-3.3-70b-instruct",
        ),
        (
            "Qwen/Qwen3-Coder-480B-A35B-Instruct",
            "qwen3-coder-480b-a35b-instruct",
        ),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3.1"),
        ("zai-org/GLM-4.6", "glm-4.6"),
    ] {
        assert_eq!(get(name).unwrap().name, expected, "{name}");
    }
}

#[test]
fn unknown_models_are_named_with_the_nearest_and_the_way_out() {
    let error = get("openai/gpt-55").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownModel);
    assert_eq!(
        error.to_string(),
        "the table of models has no \"openai/gpt-55\": the nearest names are gpt-5.5, gpt-5, gpt-5.6; \
         add another model with ModelTable::with, or with a TOML file and ModelTable::extended_by_toml"
    );
    for name in [
        "",
        "gpt",
        "claude",
        "llama",
        "gpt-5-ultra",
        "claude-sonnet-4-5-v1",
    ] {
        assert!(get(name).is_err(), "{name}");
    }
}

#[test]
fn facts_of_providers_pages() {
    // Name, window, limit of the input, largest output: OpenAI's, Anthropic's and Google's pages of models.
    for (name, window, input, output) in [
        ("gpt-5", 400_000, 272_000, 128_000),
        ("gpt-5.4", 1_050_000, 922_000, 128_000),
        ("gpt-4.1", 1_047_576, 1_047_576, 32_768),
        ("gpt-4o", 128_000, 128_000, 16_384),
        ("o3", 200_000, 200_000, 100_000),
        ("claude-sonnet-4-5", 200_000, 200_000, 64_000),
        ("claude-opus-4-1", 200_000, 200_000, 32_000),
        ("gemini-2.5-pro", 1_048_576, 1_048_576, 65_536),
        ("kimi-k2-0905", 262_144, 262_144, 100_352),
    ] {
        let model = get(name).unwrap();
        let found = (
            model.context_window,
            model.largest_input(0),
            model.max_output,
        );
        assert_eq!(found, (window, input, output), "{name}");
    }
    assert_eq!(
        get("claude-sonnet-4-5").unwrap().largest_input(64_000),
        136_000
    );
    assert_eq!(
        get("gemini-2.5-pro").unwrap().largest_input(65_536),
        1_048_576
    );
    assert_eq!(get("gpt-5").unwrap().largest_input(200_000), 200_000);
}

#[test]
fn every_price_names_the_page_of_the_models_provider() {
    let mut priced = 0;
    for row in table::MODELS {
        let name = &row.name;
        let Some(prices) = row.prices else { continue };
        priced += 1;
        let host = match () {
            () if name.starts_with("claude") => "https://platform.claude.com/docs/",
            () if name.starts_with("gemini") => "https://ai.google.dev/gemini-api/docs/",
            () => "https://developers.openai.com/api/docs/",
        };
        assert!(prices.source.starts_with(host), "{name}: {}", prices.source);
        assert!(prices.output > prices.input && prices.input > 0, "{name}");
        assert!(
            prices
                .cached_input
                .is_none_or(|cached| cached < prices.input)
        );
        assert!(prices.cache_write.is_none_or(|write| write > prices.input));
        assert!(prices.max_prompt.is_none_or(|most| most >= 100_000));
    }
    assert!(priced > 70, "{priced} rows have prices");
    // Several hosts serve these, at their own prices.
    for name in [
        "gpt-oss-20b",
        "llama-3.3-70b-instruct",
        "qwen3-32b",
        "gemma-3-27b-it",
    ] {
        assert_eq!(get(name).unwrap().prices, None, "{name}");
    }
}

#[test]
fn known_prices_have_the_right_unit() {
    // Dollars for a million tokens: prompt, cached, written to the cache, answer.
    for (name, input, cached, written, output) in [
        ("gpt-5", 1.25, Some(0.125), None, 10.0),
        ("gpt-4.1-mini", 0.4, Some(0.1), None, 1.6),
        ("o3", 2.0, Some(0.5), None, 8.0),
        ("claude-sonnet-4-5", 3.0, Some(0.3), Some(3.75), 15.0),
        ("claude-haiku-4-5", 1.0, Some(0.1), Some(1.25), 5.0),
        ("gemini-2.5-flash", 0.3, Some(0.03), None, 2.5),
        ("gemini-2.5-pro", 1.25, Some(0.125), None, 10.0),
    ] {
        let prices = get(name).unwrap().prices.unwrap();
        let dollars = |price: u64| price as f64 / 1_000.0;
        let found = (
            dollars(prices.input),
            prices.cached_input.map(dollars),
            prices.cache_write.map(dollars),
            dollars(prices.output),
        );
        assert_eq!(found, (input, cached, written, output), "{name}");
    }
    let longest = |name| get(name).unwrap().prices.unwrap().max_prompt;
    assert_eq!(longest("gemini-2.5-pro"), Some(200_000));
    assert_eq!(longest("claude-sonnet-4-5"), None);
}

#[test]
fn rows_of_ones_own_are_added_and_replace_others() {
    let builtin = ModelTable::builtin().models().count();
    let row = ModelInfo::new("gpt-5", 500_000, 50_000, "2027-01-01");
    let table = ModelTable::default().with(row.clone()).unwrap();
    assert_eq!(table.get("openai/gpt-5").unwrap(), &row);
    assert_eq!(table.models().count(), builtin);
    let own = ModelInfo::new("own.model", 8_192, 1_024, "2027-01-01".to_owned());
    let table = table.with(own.clone()).unwrap();
    assert_eq!(table.models().count(), builtin + 1);
    assert_eq!(table.models().last(), Some(&own));
    assert_eq!(table.get("own-model-2027-03-04").unwrap(), &own);
    assert!(get("own.model").is_err());
}

#[test]
fn rows_that_contradict_themselves_are_refused() {
    let good = || ModelInfo::new("m", 1_000, 100, "2026-11-23");
    for (row, reason) in [
        (ModelInfo::new("", 1_000, 100, "2026-11-23"), "a name"),
        (ModelInfo::new("a b", 1_000, 100, "2026-11-23"), "a name"),
        (
            ModelInfo::new("m", 0, 100, "2026-11-23"),
            "at least 1 token",
        ),
        (
            ModelInfo::new("m", 1_000, 0, "2026-11-23"),
            "at least 1 token",
        ),
        (
            ModelInfo::new("m", 1_000, 1_001, "2026-11-23"),
            "largest output of 1001",
        ),
        (
            ModelInfo::new("m", 1_000, 100, "23 November 2026"),
            "2026-11-23",
        ),
        (
            ModelInfo {
                max_input: Some(0),
                ..good()
            },
            "at least 1 token",
        ),
        (
            ModelInfo {
                max_input: Some(1_001),
                ..good()
            },
            "largest input",
        ),
        (
            ModelInfo {
                safety_factor: SafetyFactor::new(0.9),
                ..good()
            },
            "safety factor",
        ),
        (
            ModelInfo {
                prices: Some(TokenPrices {
                    cached_input: Some(11),
                    ..TokenPrices::new(10, 20)
                }),
                ..good()
            },
            "cached tokens cost more",
        ),
        (
            ModelInfo {
                prices: Some(TokenPrices {
                    max_prompt: Some(0),
                    ..TokenPrices::new(10, 20)
                }),
                ..good()
            },
            "no prompt",
        ),
    ] {
        let error = ModelTable::builtin().with(row).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        let message = error.to_string();
        assert!(
            message.contains(reason) && message.contains("cannot be added"),
            "{message}"
        );
    }
    assert!(ModelTable::builtin().with(good()).is_ok());
}

#[test]
fn a_model_has_the_estimator_of_its_tokenizer_with_its_own_factor_and_overhead() {
    let of = |name: &str| crate::estimator::for_model(name).unwrap();
    let exact = cfg!(feature = "exact");
    for (name, exact_id, calibrated_id) in [
        ("gpt-5", "o200k@2", "calibrated@5"),
        ("gpt-4", "cl100k@2", "calibrated-cl100k@5"),
        (
            "claude-opus-4-1",
            "calibrated-unknown@5",
            "calibrated-unknown@5",
        ),
        (
            "llama-3.1-8b-instruct",
            "calibrated-unknown@5",
            "calibrated-unknown@5",
        ),
    ] {
        let id = if exact { exact_id } else { calibrated_id };
        assert_eq!(of(name).id().as_str(), id, "{name}");
    }
    let old = of("claude-opus-4-6");
    assert_eq!(old.safety_factor(), SafetyFactor::ONE);
    assert_eq!(old.tools_overhead(), 589);
    let new = of("claude-opus-4-7");
    assert_eq!(new.safety_factor(), SafetyFactor::new(1.35));
    assert_eq!(new.text("The same words."), old.text("The same words."));
    assert_eq!(of("gpt-6-sol").tools_overhead(), 12);
    assert_eq!(
        of("glm-5").tools_overhead(),
        Calibrated::Unknown.tools_overhead()
    );
    let twice = ModelInfo {
        tokenizer: ModelTokenizer::Cl100k,
        safety_factor: SafetyFactor::new(2.0),
        tools_overhead: Some(5),
        ..ModelInfo::new("m", 1_000, 100, "2026-11-23")
    };
    let twice = twice.estimator();
    let own = if exact { 1.0 } else { 1.075 };
    assert_eq!(twice.safety_factor(), SafetyFactor::new(2.0 * own));
    assert_eq!(twice.tools_overhead(), 5);
    assert!(crate::estimator::for_model("gpt-0").is_err());
}

#[cfg(feature = "models-toml")]
#[test]
fn toml_rows_are_read_with_their_defaults_and_mistakes_are_named() {
    let text = r#"
        [[model]]
        name = "short"
        context_window = 1000
        max_output = 100
        as_of = "2026-11-23"

        [[model]]
        name = "gpt-5"
        context_window = 2000
        output_in_window = false
        max_input = 1500
        max_output = 200
        tokenizer = "cl100k"
        safety_factor = 1.5
        tools_overhead = 7
        as_of = "2027-01-01"
    "#;
    let table = ModelTable::builtin().extended_by_toml(text).unwrap();
    let short = ModelInfo::new("short", 1_000, 100, "2026-11-23");
    assert_eq!(table.get("short").unwrap(), &short);
    let long = ModelInfo {
        output_in_window: false,
        max_input: Some(1_500),
        tokenizer: ModelTokenizer::Cl100k,
        safety_factor: SafetyFactor::new(1.5),
        tools_overhead: Some(7),
        ..ModelInfo::new("gpt-5", 2_000, 200, "2027-01-01")
    };
    assert_eq!(table.get("gpt-5").unwrap(), &long);
    assert_eq!(
        ModelTable::builtin().extended_by_toml(""),
        Ok(ModelTable::builtin())
    );
    for tokenizer in ModelTokenizer::ALL {
        let text = text.replace("cl100k", tokenizer.name());
        let table = ModelTable::builtin().extended_by_toml(&text).unwrap();
        assert_eq!(table.get("gpt-5").unwrap().tokenizer, tokenizer);
    }

    for (from, to, expected) in [
        ("[[model]]", "[[models]]", "models"),
        ("max_input", "maximum_input", "maximum_input"),
        ("\"cl100k\"", "\"bert\"", "bert"),
        ("max_output = 200", "max_output = -1", "max_output"),
        ("max_output = 100", "", "max_output"),
        ("max_output = 200", "max_output = 9000", "9000"),
        ("\"2027-01-01\"", "\"2027-13-01\"", "2027-13-01"),
        ("1.5", "0.5", "safety factor"),
    ] {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text);
        let error = ModelTable::builtin().extended_by_toml(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
