//! What belongs to users: JSON, set so that it can be read, and cut where it is long.

use crate::shapes::Data;
use maud::{Markup, html};
use serde::Serialize;

/// How many bytes of one value are on a page; all of it is a link away.
const SHOWN_MAX: usize = 16 * 1024;

/// A value that opens on demand. `key` tells it from the others of the page, so that it stays open; `all` is where it is in full.
pub(super) fn fold(key: &str, name: &str, data: &Data, all: &str) -> Markup {
    html! {
        details.data data-key=(key) {
            summary { span.name { (name) } " " code.peek { (peek(data.as_str())) } }
            (block(&pretty(data.as_str()), all))
        }
    }
}

/// Text in full, or its beginning.
pub(super) fn block(text: &str, all: &str) -> Markup {
    let cut = floor(text, SHOWN_MAX);
    html! {
        pre tabindex="0" { (&text[..cut]) @if cut < text.len() { "…" } }
        @if cut < text.len() {
            p.cut { "Cut after " (cut / 1024) " of " (text.len().div_ceil(1024)) " kB. " a href=(all) { "See all of it" } }
        }
    }
}

/// The beginning of it, in one line.
pub(super) fn peek(text: &str) -> String {
    let text: String = text.chars().take(121).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    if text.chars().count() > 120 { format!("{}…", text.chars().take(119).collect::<String>()) } else { text }
}

/// With a line per value. Numbers and their order stay as they are: it is done on the text.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    let mut letters = json.chars().filter(|c| !c.is_control()).peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(40)));
    };
    while let Some(c) = letters.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' => {}
            '"' => {
                in_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while letters.next_if_eq(&' ').is_some() {}
                if let Some(end) = letters.next_if(|next| *next == '}' || *next == ']') {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

/// Any of our own shapes, as JSON.
pub(super) fn of(value: &impl Serialize) -> Data {
    serde_json::value::to_raw_value(value).map_or_else(|_| Data::null(), Data)
}

/// The last place at or before `at` where a text can be cut.
fn floor(text: &str, at: usize) -> usize {
    if text.len() <= at {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_set_out_and_stays_the_same() {
        let json = r#"{"b":1.10,"a":[1,{"c":"x, {y}: \"z\" \\"}],"none":{},"empty":[ ]}"#;
        let text = pretty(json);
        assert_eq!(
            text,
            "{\n  \"b\": 1.10,\n  \"a\": [\n    1,\n    {\n      \"c\": \"x, {y}: \\\"z\\\" \\\\\"\n    }\n  ],\n  \"none\": {},\n  \"empty\": []\n}"
        );
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&text), same(json));
    }

    #[test]
    fn long_values_are_cut_between_letters() {
        let text = "ü".repeat(SHOWN_MAX);
        let html = block(&text, "/all").into_string();
        assert!(html.contains(&format!("{}…</pre>", "ü".repeat(SHOWN_MAX / 2))));
        assert!(html.contains("Cut after 16 of 32 kB. <a href=\"/all\">"));
        assert!(!block("short", "/all").into_string().contains("Cut after"));
    }
}
