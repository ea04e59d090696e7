//! What waits and of which only the newest matters: when too many wait, or too much, the oldest go.

use std::collections::VecDeque;

/// A line in which the newest win. The newest itself always waits, however long it is.
#[derive(Debug)]
pub(crate) struct Newest<T> {
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
}

impl<T> Newest<T> {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Self {
        Newest { waiting: VecDeque::new(), bytes: 0, count_max, bytes_max }
    }

    /// Adds one of that many bytes.
    pub(crate) fn push(&mut self, one: T, bytes: usize) {
        while self.waiting.len() >= self.count_max || self.bytes.saturating_add(bytes) > self.bytes_max {
            if self.pop().is_none() {
                break;
            }
        }
        self.bytes += bytes;
        self.waiting.push_back((one, bytes));
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest of those that wait.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (one, bytes) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_too_many_wait_or_too_much() {
        let mut newest = Newest::new(3, 10);
        (1..=5).for_each(|number| newest.push(number, 1));
        assert_eq!((newest.waiting.len(), newest.bytes), (3, 3));
        newest.push(6, 9);
        assert_eq!((newest.pop(), newest.pop(), newest.pop()), (Some(5), Some(6), None));
        newest.push(7, 1);
        newest.push(8, 11);
        assert_eq!((newest.pop(), newest.pop(), newest.bytes), (Some(8), None, 0), "the newest has room whatever it takes");
    }
}
