//! Finds the types and functions of a Rust file.

use super::rust_lexer::{Token, TokenKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Struct,
    /// An enum, a trait, or an alias outside traits and their implementations.
    OtherType,
    Function,
    /// A function whose name a trait dictates.
    TraitFunction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RustItem<'a> {
    pub(crate) kind: ItemKind,
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    pub(crate) last_line: usize,
    /// Named fields of a struct.
    pub(crate) fields: usize,
}

impl RustItem<'_> {
    pub(crate) fn is_type(&self) -> bool {
        matches!(self.kind, ItemKind::Struct | ItemKind::OtherType)
    }

    pub(crate) fn lines(&self) -> usize {
        self.last_line + 1 - self.line
    }
}

/// An open brace and its meaning.
#[derive(Clone, Copy)]
enum BraceScope {
    Other,
    Trait,
    TraitImpl,
    /// The body of the item with this index.
    Body(usize),
    Fields(usize),
}

/// Types and functions, those inside function bodies included.
pub(crate) fn items<'a>(code: &[Token<'a>]) -> Vec<RustItem<'a>> {
    let mut finder = ItemFinder { code, items: Vec::new(), scopes: Vec::new(), pending: None, brackets: 0 };
    for (at, token) in code.iter().enumerate() {
        match token.kind {
            TokenKind::Mark => finder.take_mark(at),
            TokenKind::Word => finder.take_word(at),
            _ => {}
        }
    }
    finder.items
}

struct ItemFinder<'c, 'a> {
    code: &'c [Token<'a>],
    items: Vec<RustItem<'a>>,
    scopes: Vec<BraceScope>,
    /// The meaning of the next brace.
    pending: Option<BraceScope>,
    /// Open parentheses and square brackets.
    brackets: usize,
}

impl<'a> ItemFinder<'_, 'a> {
    fn take_mark(&mut self, at: usize) {
        let token = self.code[at];
        match token.text {
            "(" | "[" => self.brackets += 1,
            ")" | "]" => self.brackets = self.brackets.saturating_sub(1),
            "{" => self.scopes.push(self.pending.take().unwrap_or(BraceScope::Other)),
            "}" => {
                if let Some(BraceScope::Body(index) | BraceScope::Fields(index)) = self.scopes.pop() {
                    self.items[index].last_line = token.line;
                }
            }
            ";" if self.brackets == 0 => self.pending = None,
            ":" if self.brackets == 0 && is_field_colon(self.code, at) => {
                if let BraceScope::Fields(index) = self.scope() {
                    self.items[index].fields += 1;
                }
            }
            _ => {}
        }
    }

    fn take_word(&mut self, at: usize) {
        let keyword = self.code[at].text;
        match keyword {
            "impl" if begins_item(self.code, at) => {
                self.pending = Some(if implements_trait(&self.code[at..]) { BraceScope::TraitImpl } else { BraceScope::Other });
            }
            "struct" | "enum" | "trait" | "type" | "fn" => {
                let name = self.code.get(at + 1).and_then(|next| item_name(keyword, next));
                if let Some((name, kind)) = name.zip(item_kind(keyword, self.scope())) {
                    self.add(at, name, kind);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, at: usize, name: &'a str, kind: ItemKind) {
        let index = self.items.len();
        self.pending = match kind {
            ItemKind::Struct => Some(BraceScope::Fields(index)),
            ItemKind::Function | ItemKind::TraitFunction => Some(BraceScope::Body(index)),
            ItemKind::OtherType if self.code[at].text == "trait" => Some(BraceScope::Trait),
            ItemKind::OtherType => self.pending,
        };
        let line = self.code[at].line;
        self.items.push(RustItem { kind, name, line, last_line: line, fields: 0 });
    }

    /// The meaning of the innermost open brace.
    fn scope(&self) -> BraceScope {
        self.scopes.last().copied().unwrap_or(BraceScope::Other)
    }
}

/// The name after a keyword. Types begin with a capital: macros may take keywords as plain words.
fn item_name<'a>(keyword: &str, next: &Token<'a>) -> Option<&'a str> {
    let name = next.text.trim_start_matches("r#");
    let fits = keyword == "fn" || name.starts_with(char::is_uppercase);
    (next.kind == TokenKind::Word && fits).then_some(name)
}

/// Whether the header of an `impl` has a `for` that does not bind lifetimes.
fn implements_trait(code: &[Token<'_>]) -> bool {
    let header = code.split(|token| token.is_mark('{')).next().unwrap_or_default();
    header.windows(2).any(|pair| pair[0].is_word("for") && !pair[1].is_mark('<'))
}

fn item_kind(keyword: &str, outer: BraceScope) -> Option<ItemKind> {
    match (keyword, outer) {
        ("fn", BraceScope::TraitImpl) => Some(ItemKind::TraitFunction),
        ("fn", _) => Some(ItemKind::Function),
        ("struct", _) => Some(ItemKind::Struct),
        ("type", BraceScope::Trait | BraceScope::TraitImpl) => None,
        _ => Some(ItemKind::OtherType),
    }
}

/// Whether a keyword stands where an item begins, not inside a type such as `-> impl Trait`.
fn begins_item(code: &[Token<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| code[before]) else { return true };
    before.is_word("unsafe") || before.is_word("default") || (before.kind == TokenKind::Mark && "{};]".contains(before.text))
}

/// Whether a colon separates a field from its type; `::` does not.
fn is_field_colon(code: &[Token<'_>], at: usize) -> bool {
    let is_colon = |at: usize| code.get(at).is_some_and(|token| token.is_mark(':'));
    at > 0 && code[at - 1].kind == TokenKind::Word && !is_colon(at + 1) && !is_colon(at - 1)
}

#[cfg(test)]
mod tests {
    use super::super::rust_lexer::tokens;
    use super::*;

    fn found(text: &str) -> Vec<(ItemKind, String)> {
        items(&tokens(text)).into_iter().map(|item| (item.kind, item.name.to_owned())).collect()
    }

    fn names(text: &str) -> Vec<String> {
        found(text).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn trait_dictates_names_of_implementation() {
        use ItemKind::{Function, OtherType, TraitFunction};
        let text = "impl<T: for<'a> Fn(&'a T)> From<T> for A { type X = u8; fn from() -> impl Y {} } impl A { fn new() {} } trait B { type Z; fn c(); }";
        let expected = [(TraitFunction, "from"), (Function, "new"), (OtherType, "B"), (Function, "c")];
        assert_eq!(found(text), expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn function_ends_at_own_brace() {
        let text = "fn a<const N: usize>(x: [u8; N])\nwhere\n  T: U,\n{\n  match x {\n    _ => {}\n  }\n}\nfn b() {}";
        assert_eq!(items(&tokens(text)).iter().map(|item| (item.line, item.last_line)).collect::<Vec<_>>(), [(1, 8), (9, 9)]);
    }

    #[test]
    fn field_count_ignores_paths() {
        let text = "struct A { pub(crate) a: x::Y, #[serde(rename = \"c:d\")] b: fn(c: u8) -> Z, r#type: Option<[u8; 2]> } struct B(u8); struct C;";
        assert_eq!(items(&tokens(text)).iter().map(|item| item.fields).collect::<Vec<_>>(), [3, 0, 0]);
    }

    #[test]
    fn function_pointer_is_no_item() {
        assert!(names("forward_to_deserialize_any! { struct enum identifier }").is_empty());
        assert_eq!(names("type A = fn(u8); macro_rules! b { ($name:ident) => { fn $name() {} } }"), ["A"]);
    }
}
