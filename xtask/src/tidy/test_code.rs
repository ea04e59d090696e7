//! Separates code that only tests compile from the rest.

use super::rust_lexer::{Token, TokenKind};

/// The code that is compiled without tests, and the modules that `#[cfg(test)]` declares without a
/// body.
pub(crate) fn without_tests<'a>(code: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<&'a str>) {
    let (mut kept, mut modules) = (Vec::with_capacity(code.len()), Vec::new());
    let mut at = 0;
    while at < code.len() {
        let Some(attribute) = attribute(&code[at..]).filter(|attribute| is_for_tests(attribute)) else {
            kept.push(code[at]);
            at += 1;
            continue;
        };
        let start = at + attribute.len();
        let end = start + item_length(&code[start..]);
        if let [.., module, name, semicolon] = &code[start..end]
            && module.is_word("mod")
            && semicolon.is_mark(';')
        {
            modules.push(name.text);
        }
        at = end;
    }
    (kept, modules)
}

/// The attribute `#[…]` that the code begins with.
fn attribute<'c, 'a>(code: &'c [Token<'a>]) -> Option<&'c [Token<'a>]> {
    let (hash, bracket) = (code.first()?, code.get(1)?);
    (hash.is_mark('#') && bracket.is_mark('[')).then(|| &code[..1 + group_length(&code[1..])])
}

/// Whether an attribute is `#[test]`, `#[tokio::test]` or a `cfg` that no other build satisfies.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let inner = &attribute[2..attribute.len() - 1];
    match inner.first() {
        Some(first) if first.is_word("cfg") => needs_test(&inner[1..]),
        Some(first) if first.kind == TokenKind::Word => {
            let path = inner.split(|token| token.is_mark('(')).next().unwrap_or_default();
            path.last().is_some_and(|last| last.is_word("test"))
        }
        _ => false,
    }
}

/// Whether `(test)`, `(all(test, …))` or the like can be true only in tests.
fn needs_test(group: &[Token<'_>]) -> bool {
    let mut at = 1;
    while at < group.len() {
        let arguments = if group.get(at + 1).is_some_and(|token| token.is_mark('(')) { group_length(&group[at + 1..]) } else { 0 };
        let inner = &group[at + 1..at + 1 + arguments];
        match group[at].text {
            "test" if group[at].kind == TokenKind::Word => return true,
            "all" if needs_test(inner) => return true,
            "any" if any_needs_test(inner) => return true,
            _ => at += 1 + arguments,
        }
    }
    false
}

/// Whether each predicate of `any(…)` needs tests.
fn any_needs_test(group: &[Token<'_>]) -> bool {
    group.iter().filter(|token| token.is_mark(',')).count() == 0 && needs_test(group)
}

/// The length of a bracketed group that the code begins with, its brackets included.
fn group_length(code: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate() {
        match token.kind {
            TokenKind::Mark if "([{".contains(token.text) => depth += 1,
            TokenKind::Mark if ")]}".contains(token.text) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The length of the item, statement or field that follows an attribute.
fn item_length(code: &[Token<'_>]) -> usize {
    let mut at = 0;
    while let Some(attribute) = attribute(&code[at..]) {
        at += attribute.len();
    }
    let (mut to_semicolon, mut is_item) = (false, false);
    while let Some(token) = code.get(at) {
        match token.text {
            "use" | "static" | "let" | "type" if token.kind == TokenKind::Word => to_semicolon = true,
            "const" if token.kind == TokenKind::Word => to_semicolon |= !code.get(at + 1).is_some_and(|next| next.is_word("fn")),
            "fn" | "mod" | "struct" | "enum" | "trait" | "impl" | "macro_rules" if token.kind == TokenKind::Word => is_item = true,
            ";" => return at + 1,
            "," if !is_item && !to_semicolon => return at + 1,
            ")" | "]" | "}" if token.kind == TokenKind::Mark => return at,
            "{" if !to_semicolon => return at + group_length(&code[at..]),
            "(" | "[" | "{" if token.kind == TokenKind::Mark => at += group_length(&code[at..]) - 1,
            _ => {}
        }
        at += 1;
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::super::rust_items::items;
    use super::super::rust_lexer::tokens;
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let (code, _) = without_tests(&tokens(text));
        items(&code).into_iter().map(|item| item.name.to_owned()).collect()
    }

    #[test]
    fn test_module_is_left_out() {
        let text = "fn a() {} #[cfg(test)] mod tests { fn b() { if x { } } } fn c() {}";
        assert_eq!(names(text), ["a", "c"]);
    }

    #[test]
    fn test_import_ends_at_semicolon() {
        let (kept, _) = without_tests(&tokens("#[cfg(test)] use a::{b, c}; fn"));
        assert_eq!(kept.iter().map(|token| token.text).collect::<Vec<_>>(), ["fn"]);
        assert_eq!(names("#[cfg(test)] const A: B = B { c: 1 }; fn d() {}"), ["d"]);
        assert_eq!(names("#[cfg(test)] const fn a() {} fn d() {}"), ["d"]);
    }

    #[test]
    fn test_field_ends_at_comma() {
        assert_eq!(items(&without_tests(&tokens("struct A { #[cfg(test)] b: C, d: E } fn f() {}")).0)[0].fields, 1);
        assert_eq!(names("struct A { d: E, #[cfg(test)] b: C } fn f() {}"), ["A", "f"]);
    }

    #[test]
    fn only_cfg_for_tests_counts() {
        assert_eq!(names("#[cfg(any(test, feature = \"testing\"))] fn a() {}"), ["a"]);
        assert_eq!(names("#[cfg(not(test))] fn a() {}"), ["a"]);
        assert_eq!(names("#[cfg(feature = \"test\")] fn a() {}"), ["a"]);
        assert!(names("#[cfg(all(unix, test))] fn a<T, U>() {}").is_empty());
        assert!(names("#[tokio::test(flavor = \"x\")] #[ignore] async fn a() {}").is_empty());
    }
}
