//! Costs of tool definitions.

/// Tokens that providers add around each tool. OpenAI's published counter adds 10 and 3 for a function of GPT-3.5 and
/// GPT-4, and less for later models. The JSON wrapper that Anthropic's models read is about as long.
const TOOL: u64 = 16;
/// Tokens that an element of an array costs more as TypeScript (`"a" | "b"`) than as JSON (`"a","b"`). OpenAI's
/// published counter adds 3 for an item of an `enum`, and 1 of them is the cost of JSON's own punctuation.
const ELEMENT: u64 = 2;
/// Tokens that OpenAI's rendering adds once for all tools. The figure is from OpenAI's published counter.
pub(crate) const REQUEST: u64 = 12;
/// Largest number of tokens that Anthropic states for the system prompt that it adds to a request with tools: 804, for
/// Claude Opus 4.7 when a call is forced.
pub(crate) const ANTHROPIC_REQUEST: u64 = 804;

/// A borrowed view of a tool that a model may call. Nothing is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolView<'a> {
    /// Name by which the model calls the tool.
    pub name: &'a str,
    /// Description of the tool for the model. May be empty.
    pub description: &'a str,
    /// JSON Schema of the arguments, as JSON text without white space between its tokens. White space would be counted.
    pub parameters: &'a str,
}

impl<'a> ToolView<'a> {
    /// Creates a view of a tool from its name, its description, and the JSON Schema of its arguments.
    pub const fn new(name: &'a str, description: &'a str, parameters: &'a str) -> Self {
        Self {
            name,
            description,
            parameters,
        }
    }

    /// Returns the cost of the tool in tokens, as [`TokenEstimator::tool`](crate::TokenEstimator::tool) describes.
    /// `text` returns the cost of a text.
    pub(crate) fn cost(&self, text: &dyn Fn(&str) -> u64) -> u64 {
        [self.name, self.description, self.parameters]
            .into_iter()
            .fold(TOOL, |sum, part| sum.saturating_add(text(part)))
            .saturating_add(ELEMENT.saturating_mul(array_elements(self.parameters)))
    }
}

/// Maximum depth at which objects and arrays are distinguished. Deeper containers count as arrays.
const DEPTH: u32 = 128;

/// Returns the number of elements in all arrays of a JSON text. An empty array counts as one element.
fn array_elements(json: &str) -> u64 {
    let (mut elements, mut depth) = (0_u64, 0_u32);
    // Bit n is set if the container at depth n + 1 is an array.
    let mut arrays = 0_u128;
    let (mut quoted, mut escaped) = (false, false);
    for byte in json.bytes() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'[' | b'{' => {
                let array = byte == b'[';
                if depth < DEPTH {
                    arrays = arrays & !(1 << depth) | u128::from(array) << depth;
                }
                depth += 1;
                elements += u64::from(array);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => {
                let inner = depth.saturating_sub(1);
                let array = depth > 0 && (inner >= DEPTH || arrays >> inner & 1 == 1);
                elements += u64::from(array);
            }
            _ => {}
        }
    }
    elements
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the number of elements, computed with a parser. An empty array counts as one.
    fn parsed(value: &Value) -> u64 {
        match value {
            Value::Array(items) => {
                let own = items.len().max(1) as u64;
                own + items.iter().map(parsed).sum::<u64>()
            }
            Value::Object(map) => map.values().map(parsed).sum(),
            _ => 0,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[\\[\\]{},:\"\\\\a-c]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\\[\\]{},\"\\\\a-c]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn depth_and_unbalanced_text_do_no_harm() {
        assert_eq!(array_elements("]]]],,,"), 0);
        assert_eq!(array_elements(&"[".repeat(1_000)), 1_000);
        let deep = format!("{}1,2{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(array_elements(&deep), 201);
        assert_eq!(array_elements("\"[1,2"), 0);
    }

    #[test]
    fn a_tool_costs_its_texts_and_the_providers_additions() {
        let parameters = json!({"enum": ["a", "b", "c"]}).to_string();
        let tool = ToolView::new("name", "description", &parameters);
        let letters = |text: &str| text.len() as u64;
        let texts = 4 + 11 + parameters.len() as u64;
        assert_eq!(tool.cost(&letters), texts + TOOL + 3 * ELEMENT);
        assert_eq!(ToolView::new("", "", "").cost(&letters), TOOL);
        assert_eq!(tool.cost(&|_| u64::MAX), u64::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn elements_are_those_that_a_parser_finds(value in any_json()) {
            prop_assert_eq!(array_elements(&value.to_string()), parsed(&value));
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(array_elements(&pretty), parsed(&value));
        }
    }
}
