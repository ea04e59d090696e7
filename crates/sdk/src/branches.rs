//! Branches of a workflow: side by side, or the first of several.

use crate::Ctx;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join, join_all, join3, join4, join5, select_all};
use std::future::Future;
use steadfast_runtime::host::Fork;

impl Ctx {
    /// Runs branches side by side and waits for all of them.
    ///
    /// Every branch counts its steps by itself, so branches that use the same names never get each other's results. A branch whose step backs off
    /// holds up nobody else.
    ///
    /// ```
    /// # use steadfast::{Ctx, Failure, workflow};
    /// #[workflow]
    /// async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
    ///     let (label, parcel) = ctx
    ///         .join((
    ///             async { ctx.step("print", || async { Ok::<_, Failure>(format!("label {order}")) }).await },
    ///             async { ctx.step("pack", || async { Ok::<_, Failure>(format!("parcel {order}")) }).await },
    ///         ))
    ///         .await;
    ///     Ok(format!("{} on {}", label?, parcel?))
    /// }
    /// ```
    ///
    /// # Panics
    /// If it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn join<'a, B: Join<'a>>(&self, branches: B) -> BoxFuture<'a, B::Output> {
        branches.join(&self.fork("join"))
    }

    /// Runs a branch per item side by side and waits for all of them; the results are in the order of the branches.
    ///
    /// # Panics
    /// If it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn all<'a, T: Send + 'a, F: Future<Output = T> + Send + 'a>(&self, branches: impl IntoIterator<Item = F>) -> BoxFuture<'a, Vec<T>> {
        let fork = self.fork("all");
        let branches: Vec<_> = branches.into_iter().enumerate().map(|(index, branch)| fork.branch(index, branch)).collect();
        join_all(branches).boxed()
    }

    /// Runs branches side by side until the first one ends, and tells which it was and what it returned. The others are dropped, with the attempts
    /// they had in flight.
    ///
    /// # Panics
    /// If there is no branch, or it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn race<'a, B: Race<'a>>(&self, branches: B) -> BoxFuture<'a, (usize, B::Output)> {
        let fork = self.fork("race");
        let branches = branches.into_branches();
        assert!(!branches.is_empty(), "a race needs at least one branch");
        let branches: Vec<_> = branches.into_iter().enumerate().map(|(index, branch)| fork.branch(index, branch)).collect();
        select_all(branches).map(|(output, index, _losers)| (index, output)).boxed()
    }

    /// Runs a future as a branch of its own: what it asks for is counted under that name.
    ///
    /// # Panics
    /// If the name is not allowed, or it is asked for outside of the workflow's own future.
    #[track_caller]
    pub fn branch<'a, T: 'a>(&self, name: &str, branch: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        self.fork(name).only(branch).boxed()
    }
}

/// What can be joined: tuples of two to five futures.
pub trait Join<'a> {
    /// What they return.
    type Output: 'a;

    /// Makes a branch of each and waits for all of them.
    fn join(self, fork: &Fork) -> BoxFuture<'a, Self::Output>;
}

/// What can race: tuples of two to five futures that return the same, or a vector or array of them.
pub trait Race<'a> {
    /// What each of them returns.
    type Output: 'a;

    /// The branches, in order.
    fn into_branches(self) -> Vec<BoxFuture<'a, Self::Output>>;
}

macro_rules! tuples {
    ($($join:ident($($future:ident $output:ident $index:tt),+);)+) => {$(
        impl<'a, $($future, $output),+> Join<'a> for ($($future,)+)
        where
            $($future: Future<Output = $output> + Send + 'a, $output: Send + 'a),+
        {
            type Output = ($($output,)+);

            fn join(self, fork: &Fork) -> BoxFuture<'a, Self::Output> {
                $join($(fork.branch($index, self.$index)),+).boxed()
            }
        }

        impl<'a, T: 'a, $($future: Future<Output = T> + Send + 'a),+> Race<'a> for ($($future,)+) {
            type Output = T;

            fn into_branches(self) -> Vec<BoxFuture<'a, T>> {
                vec![$(self.$index.boxed()),+]
            }
        }
    )+};
}

tuples! {
    join(A TA 0, B TB 1);
    join3(A TA 0, B TB 1, C TC 2);
    join4(A TA 0, B TB 1, C TC 2, D TD 3);
    join5(A TA 0, B TB 1, C TC 2, D TD 3, E TE 4);
}

impl<'a, T: 'a, F: Future<Output = T> + Send + 'a> Race<'a> for Vec<F> {
    type Output = T;

    fn into_branches(self) -> Vec<BoxFuture<'a, T>> {
        self.into_iter().map(FutureExt::boxed).collect()
    }
}

impl<'a, T: 'a, F: Future<Output = T> + Send + 'a, const N: usize> Race<'a> for [F; N] {
    type Output = T;

    fn into_branches(self) -> Vec<BoxFuture<'a, T>> {
        self.into_iter().map(FutureExt::boxed).collect()
    }
}
