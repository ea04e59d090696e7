//! A look at the text of a template: the paths of names in it, its filters and its tests.

/// What stands in the code of a template.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scanned {
    /// Names with what is asked of them: `steps`, `charge`, `output` of `steps.charge.output`.
    pub(super) paths: Vec<Path>,
    pub(super) filters: Vec<String>,
    pub(super) tests: Vec<String>,
}

/// A name and what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    pub(super) parts: Vec<String>,
    /// It goes on with something that is only known at run time: `steps[input.which]`.
    pub(super) goes_on: bool,
}

/// Looks at a text with expressions in it.
pub(super) fn text(source: &str) -> Scanned {
    let (mut scanned, mut rest) = (Scanned::default(), source);
    while let Some(start) = rest.find('{') {
        let closing = match rest.get(start..start + 2) {
            Some("{{") => "}}",
            Some("{%") => "%}",
            Some("{#") => "#}",
            _ => {
                rest = &rest[start + 1..];
                continue;
            }
        };
        let inside = &rest[start + 2..];
        if closing == "#}" {
            rest = inside.split_once(closing).map_or("", |(_, after)| after);
        } else {
            rest = Scan { rest: inside, found: &mut scanned }.until(closing);
        }
    }
    scanned
}

/// Looks at an expression.
pub(super) fn expression(source: &str) -> Scanned {
    let mut scanned = Scanned::default();
    Scan { rest: source, found: &mut scanned }.until("\0");
    scanned
}

struct Scan<'s, 'f> {
    rest: &'s str,
    found: &'f mut Scanned,
}

impl<'s> Scan<'s, '_> {
    /// Looks at everything up to the closing, and gives what comes after it.
    fn until(mut self, closing: &str) -> &'s str {
        let mut before = Before::Other;
        loop {
            self.rest = self.rest.trim_start();
            if let Some(after) = self.rest.strip_prefix(closing) {
                return after;
            }
            let Some(first) = self.rest.chars().next() else { return "" };
            before = match first {
                '"' | '\'' => {
                    self.literal();
                    Before::Other
                }
                c if is_start(c) => self.name(before),
                '|' => self.skip(first, Before::Pipe),
                '.' => self.skip(first, Before::Dot),
                c if c.is_ascii_digit() => {
                    self.word();
                    Before::Other
                }
                c => self.skip(c, Before::Other),
            };
        }
    }

    fn skip(&mut self, c: char, before: Before) -> Before {
        self.rest = &self.rest[c.len_utf8()..];
        before
    }

    fn word(&mut self) -> &'s str {
        let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A quoted text, which is what it gives; escapes are left as they are.
    fn literal(&mut self) -> &'s str {
        let quote = self.rest.chars().next().unwrap_or('"');
        let inside = &self.rest[1..];
        let mut escaped = false;
        let end = inside.find(|c: char| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.unwrap_or(inside.len());
        self.rest = inside.get(end + 1..).unwrap_or("");
        &inside[..end]
    }

    fn name(&mut self, before: Before) -> Before {
        let word = self.word();
        match (before, word) {
            (Before::Pipe, _) => self.found.filters.push(word.into()),
            (Before::Is, "not") => return Before::Is,
            (Before::Is, _) => self.found.tests.push(word.into()),
            (Before::Dot, _) => {}
            (Before::Other, "is") => return Before::Is,
            (Before::Other, _) => self.path(word),
        }
        Before::Other
    }

    fn path(&mut self, root: &str) {
        let mut path = Path { parts: vec![root.into()], goes_on: false };
        loop {
            let rest = self.rest.trim_start();
            if let Some(after) = rest.strip_prefix('.').filter(|after| after.trim_start().starts_with(is_start)) {
                self.rest = after.trim_start();
                let part = self.word();
                path.parts.push(part.into());
            } else if let Some(after) = rest.strip_prefix('[') {
                let after = after.trim_start();
                if !after.starts_with(['"', '\'']) {
                    path.goes_on = true;
                    break;
                }
                self.rest = after;
                let part = self.literal();
                self.rest = self.rest.trim_start();
                self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
                path.parts.push(part.into());
            } else {
                break;
            }
        }
        self.found.paths.push(path);
    }
}

/// What stood before a name.
#[derive(Clone, Copy)]
enum Before {
    Pipe,
    Is,
    Dot,
    Other,
}

fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        let shown = |path: Path| path.parts.join("/") + if path.goes_on { "/?" } else { "" };
        text(source).paths.into_iter().map(shown).collect()
    }

    #[test]
    fn paths_are_found_however_they_are_written() {
        assert_eq!(paths("a steps.x {{ steps.charge.output.id }} b"), ["steps/charge/output/id"]);
        assert_eq!(paths("{{ steps['cool-down'] [\"output\"].x }}"), ["steps/cool-down/output/x"]);
        assert_eq!(paths("{{ steps[input.which].output }}"), ["steps/?", "input/which"]);
        assert_eq!(
            paths("{% if run.id %}{{ 'steps.no' ~ \"it\\\"s\" ~ index }}{% endif %}{# steps.never #}"),
            ["if", "run/id", "index", "endif"]
        );
        assert_eq!(paths("{{ steps.cool-down.output }}"), ["steps/cool", "down/output"]);
    }

    #[test]
    fn filters_and_tests_are_found() {
        let scanned = expression("input.a | upper | default('x') if input.b is not defined else 3 is odd");
        assert_eq!((scanned.filters, scanned.tests), (vec!["upper".into(), "default".into()], vec!["defined".into(), "odd".into()]));
    }

    #[test]
    fn unfinished_templates_end() {
        for source in ["{{", "{{ 'abc", "{{ a.", "{{ a['", "{{ a[", "{", "{% ", "{# x", "{{ ü }}"] {
            let _ends = text(source);
        }
    }
}
