//! The way through the graph: each step starts the moment all that it comes after are done.

use super::{Outputs, Play};
use crate::template::value;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use minijinja::Value;
use steadfast_kernel::Failure;

impl Play {
    /// Carries out all steps. Those after one that failed never begin; those that do not depend on it do, and when they are done the first
    /// failure is the run's.
    pub(super) async fn walk(&self) -> Result<Outputs, Failure> {
        let count = self.definition.steps.len();
        let mut outputs: Outputs = vec![None; count];
        let mut missing: Vec<usize> = self.definition.steps.iter().map(|step| step.after.len()).collect();
        let (mut running, mut failure) = (FuturesUnordered::new(), None);
        running.extend((0..count).filter(|index| missing[*index] == 0).map(|index| self.clone().take(index, &outputs)));
        while let Some((index, outcome)) = running.next().await {
            match outcome {
                Err(failed) => drop(failure.get_or_insert(failed)),
                Ok(output) => {
                    outputs[index] = Some(output);
                    for next in self.followers(index) {
                        missing[next] -= 1;
                        if missing[next] == 0 {
                            running.push(self.clone().take(next, &outputs));
                        }
                    }
                }
            }
        }
        failure.map_or(Ok(outputs), Err)
    }

    fn followers(&self, index: usize) -> impl Iterator<Item = usize> {
        let comes_after = move |next: &usize| self.step(*next).after.contains(&index);
        (0..self.definition.steps.len()).filter(comes_after)
    }

    /// A step with what it sees, and its number for when it is done.
    fn take(self, index: usize, outputs: &Outputs) -> impl Future<Output = (usize, Result<Value, Failure>)> + Send + use<> {
        let scope = self.scope_of(self.step(index).sees.iter().copied(), outputs);
        async move { (index, self.carry_out(index, scope).await.map(|output| value(&output.unwrap_or_default()))) }
    }
}
