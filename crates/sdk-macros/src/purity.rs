//! What workflow code must not call between steps, as far as it can be seen in the text.
//!
//! Closures are left alone: the code of a step is one, and it may do anything. Functions that are called are not looked into.

use syn::visit::{self, Visit};
use syn::{Block, Error, ExprCall, ExprClosure, ExprPath, Macro, Path};

const TIME: &str = "use ctx.now()";
const SLEEP: &str = "use ctx.sleep(), which outlasts the process";
const CHANCE: &str = "use ctx.random()";
const SPAWN: &str = "what is spawned is not part of the run; use ctx.join, ctx.all or ctx.race";
const OUTSIDE: &str = "it may find something else; pass it in with the input";

/// The end of a path that is called, and what to use instead.
const FORBIDDEN: [(&[&str], &str); 23] = [
    (&["SystemTime", "now"], TIME),
    (&["Instant", "now"], TIME),
    (&["Utc", "now"], TIME),
    (&["Local", "now"], TIME),
    (&["Timestamp", "now"], TIME),
    (&["Zoned", "now"], TIME),
    (&["Uuid", "new_v4"], "use ctx.uuid()"),
    (&["Uuid", "now_v7"], "use ctx.uuid()"),
    (&["rand", "random"], CHANCE),
    (&["rand", "rng"], CHANCE),
    (&["rand", "thread_rng"], CHANCE),
    (&["time", "sleep"], SLEEP),
    (&["time", "sleep_until"], SLEEP),
    (&["time", "interval"], SLEEP),
    (&["thread", "sleep"], SLEEP),
    (&["time", "timeout"], "use the step's own .timeout(), or ctx.race with ctx.sleep()"),
    (&["tokio", "spawn"], SPAWN),
    (&["task", "spawn"], SPAWN),
    (&["task", "spawn_blocking"], SPAWN),
    (&["thread", "spawn"], SPAWN),
    (&["env", "var"], OUTSIDE),
    (&["fs", "read"], OUTSIDE),
    (&["fs", "read_to_string"], OUTSIDE),
];

/// Refuses every call that cannot be the same in replay.
pub(crate) fn check(block: &Block) -> Result<(), Error> {
    let mut search = Search { found: None };
    search.visit_block(block);
    search.found.map_or(Ok(()), Err)
}

struct Search {
    found: Option<Error>,
}

impl Search {
    fn refuse(&mut self, path: &Path, message: String) {
        let error = Error::new_spanned(path, message);
        match &mut self.found {
            Some(found) => found.combine(error),
            None => self.found = Some(error),
        }
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let syn::Expr::Path(ExprPath { path, .. }) = &*call.func
            && let Some((end, instead)) = FORBIDDEN.iter().find(|(end, _)| ends_with(path, end))
        {
            let message = format!("{} is not the same when the run is replayed: {instead}, or call it inside a step", end.join("::"));
            self.refuse(path, message);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let is_biased = call.tokens.clone().into_iter().next().is_some_and(|first| first.to_string() == "biased");
        if ends_with(&call.path, &["select"]) && !is_biased {
            let message = "select! asks its branches in an order that is not the same when the run is replayed: use ctx.race";
            self.refuse(&call.path, message.into());
        }
    }
}

fn ends_with(path: &Path, end: &[&str]) -> bool {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names.len() >= end.len() && names[names.len() - end.len()..].iter().eq(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refused(block: &Block) -> Vec<String> {
        check(block).err().into_iter().flatten().map(|error| error.to_string()).collect()
    }

    #[test]
    fn everything_that_differs_from_one_time_to_the_next_is_refused_with_advice() {
        let messages = refused(&parse_quote!({
            let now = std::time::SystemTime::now();
            if true {
                loop {
                    tokio::time::sleep(d).await
                }
            }
            let id = format(Uuid::new_v4());
            tokio::spawn(async {});
        }));
        let advice = ["use ctx.now()", "use ctx.sleep()", "use ctx.uuid()", "use ctx.join, ctx.all or ctx.race"];
        assert_eq!(messages.len(), advice.len(), "{messages:?}");
        assert_eq!(messages[0], "SystemTime::now is not the same when the run is replayed: use ctx.now(), or call it inside a step");
        assert!(messages.iter().zip(advice).all(|(message, advice)| message.contains(advice)), "{messages:?}");
    }

    #[test]
    fn branches_are_workflow_code_too() {
        let branch = parse_quote!({
            ctx.join((async { Instant::now() }, b)).await;
        });
        assert_eq!(refused(&branch).len(), 1);
    }

    #[test]
    fn a_select_has_to_be_biased() {
        let random = syn::parse_str("{ tokio::select! { a = b => {} } }").unwrap();
        let biased = syn::parse_str("{ tokio::select! { biased; a = b => {} } }").unwrap();
        assert_eq!((refused(&random).len(), refused(&biased).len()), (1, 0));
    }

    #[test]
    fn steps_may_do_anything() {
        let steps = parse_quote!({
            ctx.step("a", || async { SystemTime::now() }).await;
            ctx.step("a", move || {
                tokio::spawn(work());
                later()
            })
            .await
        });
        assert_eq!(refused(&steps), Vec::<String>::new());
    }

    #[test]
    fn names_that_only_sound_alike_are_left_alone() {
        let others = parse_quote!({
            ctx.now();
            ctx.sleep(d).await;
            now();
            sleep(d);
            select(a, b);
        });
        assert_eq!(refused(&others), Vec::<String>::new());
    }
}
