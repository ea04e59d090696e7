//! A transfer of money, and its tests: crashes everywhere, answers that get lost, a day that passes at once.
//!
//! `cargo run --example tested` moves money from Ada to Bob. `cargo test --example tested` shows that it is moved once, whatever happens.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use serde::{Deserialize, Serialize};
use std::time::Duration;
use steadfast::{Ctx, Engine, Error, Failure, Policy, SECOND, workflow};

#[derive(Debug, Serialize, Deserialize)]
struct Transfer {
    from: String,
    to: String,
    cents: i64,
    /// How long the money is held.
    hold: Duration,
}

/// Takes the money, holds it, and passes it on; if that cannot be, it goes back.
#[workflow]
async fn transfer(ctx: Ctx, order: Transfer) -> Result<(), Failure> {
    let patience = Policy::exponential(SECOND).max_attempts(5);
    ctx.step("take", || {
        let booking = ctx.idempotency_key().unwrap_or_default(); // the same in every attempt
        bank::book(booking, &order.from, -order.cents)
    })
    .retry(patience.clone())
    .undo({
        let (booking, from, cents) = (format!("{}/back", ctx.run_id()), order.from.clone(), order.cents);
        move |()| bank::book(booking.clone(), &from, cents)
    })
    .await?;
    ctx.sleep(order.hold).await?;
    ctx.step("give", || bank::book(ctx.idempotency_key().unwrap_or_default(), &order.to, order.cents))
        .retry(patience)
        .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let engine = Engine::open("data")?.register(transfer).start().await?;
    let order = Transfer { from: "Ada".into(), to: "Bob".into(), cents: 500, hold: SECOND / 10 };
    engine.start("transfer", &order).id("t-1").await?.result::<()>().await?;
    println!("moved; this process has booked {} for Bob", bank::balance("Bob"));
    engine.shutdown().await;
    Ok(())
}

/// A bank that knows a booking which it has seen. It stands for a service that is called.
mod bank {
    use super::Failure;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    thread_local! {
        static BOOKINGS: RefCell<BTreeMap<String, (String, i64)>> = RefCell::default();
    }

    pub(super) fn book(booking: String, account: &str, cents: i64) -> impl Future<Output = Result<(), Failure>> + use<> {
        let account = account.to_string();
        async move {
            BOOKINGS.with_borrow_mut(|bookings| drop(bookings.insert(booking, (account, cents))));
            Ok(())
        }
    }

    pub(super) fn balance(account: &str) -> i64 {
        BOOKINGS.with_borrow(|bookings| bookings.values().filter(|(of, _)| of == account).map(|(_, cents)| cents).sum())
    }

    #[cfg(test)]
    pub(super) fn forget() {
        BOOKINGS.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::testing::{Crash, Lab};
    use steadfast::{DAY, HOUR, Status};

    fn order() -> Transfer {
        Transfer { from: "Ada".into(), to: "Bob".into(), cents: 500, hold: DAY }
    }

    fn balances() -> (i64, i64) {
        (bank::balance("Ada"), bank::balance("Bob"))
    }

    #[tokio::test]
    async fn the_money_is_held_for_a_day() {
        let lab = Lab::new().register(transfer).open().await;
        lab.start(transfer, "t-1", &order()).await;
        lab.advance(23 * HOUR).await;
        assert_eq!(balances(), (-500, 0));
        lab.advance(HOUR).await;
        assert_eq!(balances(), (-500, 500));
        lab.journal("t-1").await.ended(Status::Completed).step("give").after("take");
    }

    #[tokio::test]
    async fn an_answer_that_gets_lost_does_not_take_the_money_twice() {
        let lab = Lab::new().register(transfer).open().await;
        lab.lose_answer("take", 1, Failure::transient("the connection was closed"));
        lab.start(transfer, "t-1", &order()).await;
        lab.result::<()>("t-1").await.unwrap();
        assert_eq!((lab.calls("take").len(), balances()), (2, (-500, 500)));
        lab.journal("t-1").await.step("take").attempts(2).completed();
    }

    #[tokio::test]
    async fn what_cannot_be_given_goes_back() {
        let lab = Lab::new().register(transfer).open().await;
        lab.fail_attempt("give", 1, Failure::permanent("the account is closed"));
        lab.crash_at(Crash::AfterEvent("t-1".into(), 4)); // on the way
        lab.start(transfer, "t-1", &order()).await;
        assert_eq!(lab.result::<()>("t-1").await.unwrap_err().message, "the account is closed");
        assert_eq!(balances(), (0, 0));
        lab.journal("t-1").await.ended(Status::Failed).step("take/undo").completed();
    }

    #[tokio::test]
    async fn a_crash_anywhere_moves_the_money_once() {
        let scenario = async |lab: &Lab| {
            bank::forget();
            lab.fail_attempt("give", 1, Failure::transient("the bank is closed"));
            lab.start(transfer, "t-1", &order()).await;
            lab.result::<()>("t-1").await.unwrap();
            balances()
        };
        let report = Lab::new().register(transfer).crash_everywhere(scenario).await;
        assert_eq!(report.outcome, (-500, 500));
        report.called_at_most("take", 2).called_at_most("give", 2);
    }
}
