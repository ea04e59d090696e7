//! What workflow code must not call between steps, as far as it can be seen in the text.
//!
//! Closures are left alone: the code of a step is one, and it may do anything. Functions that are called are not looked into.

use syn::visit::{self, Visit};
use syn::{Block, Error, ExprCall, ExprClosure, ExprPath};

/// The end of a path that is called, and what to use instead.
const FORBIDDEN: [(&[&str], &str); 13] = [
    (&["SystemTime", "now"], "use ctx.now()"),
    (&["Instant", "now"], "use ctx.now()"),
    (&["Utc", "now"], "use ctx.now()"),
    (&["Local", "now"], "use ctx.now()"),
    (&["Timestamp", "now"], "use ctx.now()"),
    (&["Zoned", "now"], "use ctx.now()"),
    (&["Uuid", "new_v4"], "use ctx.uuid()"),
    (&["Uuid", "now_v7"], "use ctx.uuid()"),
    (&["rand", "random"], "use ctx.random()"),
    (&["time", "sleep"], "use ctx.sleep(), which outlasts the process"),
    (&["thread", "sleep"], "use ctx.sleep(), which outlasts the process"),
    (&["tokio", "spawn"], "use ctx.join, ctx.all or ctx.race; a task that is spawned is not replayed"),
    (&["thread", "spawn"], "use ctx.join, ctx.all or ctx.race; a thread is not replayed"),
];

/// Refuses the first call that cannot be the same in replay.
pub(crate) fn check(block: &Block) -> Result<(), Error> {
    let mut search = Search { found: None };
    search.visit_block(block);
    search.found.map_or(Ok(()), Err)
}

struct Search {
    found: Option<Error>,
}

impl<'ast> Visit<'ast> for Search {
    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let syn::Expr::Path(ExprPath { path, .. }) = &*call.func {
            let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let is_called = |end: &[&str]| names.len() >= end.len() && names[names.len() - end.len()..].iter().eq(end);
            if let Some((end, instead)) = FORBIDDEN.iter().find(|(end, _)| is_called(end)) {
                let message = format!("{} is not the same when the run is replayed: {instead}, or call it inside a step", end.join("::"));
                self.found.get_or_insert_with(|| Error::new_spanned(path, message));
            }
        }
        visit::visit_expr_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refused(block: &Block) -> Option<String> {
        check(block).err().map(|error| error.to_string())
    }

    #[test]
    fn what_differs_from_one_time_to_the_next_is_refused_with_advice() {
        let message = refused(&parse_quote!({
            let now = std::time::SystemTime::now();
            Ok(now)
        }))
        .unwrap();
        assert_eq!(message, "SystemTime::now is not the same when the run is replayed: use ctx.now(), or call it inside a step");
        assert!(
            refused(&parse_quote!({
                if true {
                    loop {
                        tokio::time::sleep(d).await
                    }
                }
            }))
            .unwrap()
            .contains("ctx.sleep()")
        );
        assert!(
            refused(&parse_quote!({
                let id = format(Uuid::new_v4());
            }))
            .unwrap()
            .contains("ctx.uuid()")
        );
        assert!(
            refused(&parse_quote!({
                tokio::spawn(async {});
            }))
            .unwrap()
            .contains("ctx.join")
        );
        assert!(
            refused(&parse_quote!({
                ctx.join((async { Instant::now() }, b)).await;
            }))
            .is_some(),
            "branches are workflow code too"
        );
    }

    #[test]
    fn steps_may_do_anything() {
        assert_eq!(refused(&parse_quote!({ ctx.step("a", || async { SystemTime::now() }).await })), None);
        assert_eq!(
            refused(&parse_quote!({
                ctx.step("a", move || {
                    tokio::spawn(work());
                    later()
                })
                .await
            })),
            None
        );
        assert_eq!(
            refused(&parse_quote!({
                ctx.now();
                ctx.sleep(d).await;
                now();
                sleep(d);
            })),
            None
        );
    }
}
