//! Answers that are kept, one behind the other. They are forgotten in about the order in which they came, so none of them needs memory of its own: nothing is asked of the
//! allocator for each, and nothing given back.

use std::collections::VecDeque;

/// How long a piece of the log is.
const PIECE: usize = 256 << 10;

/// The longest answer that is kept here: one that is longer would leave too much of a piece empty.
pub(super) const LONGEST: usize = PIECE / 8;

/// Where an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    piece: u32,
    at: u32,
    length: u32,
}

impl Logged {
    /// One without bytes, which is nowhere.
    pub(super) const EMPTY: Logged = Logged { piece: 0, at: 0, length: 0 };

    pub(super) fn len(self) -> usize {
        self.length as usize
    }
}

/// The answers that are kept.
#[derive(Default)]
pub(super) struct Log {
    pieces: VecDeque<Piece>,
    /// The number of the first piece.
    first: u32,
    /// The last piece that was given up, to be used again.
    spare: Vec<u8>,
}

struct Piece {
    bytes: Vec<u8>,
    /// How many answers in it are kept.
    kept: u32,
}

impl Log {
    /// Keeps an answer that is not too long.
    pub(super) fn add(&mut self, answer: &[u8]) -> Logged {
        if answer.is_empty() {
            return Logged::EMPTY;
        }
        if self.pieces.back().is_none_or(|piece| piece.bytes.len() + answer.len() > PIECE) {
            let mut bytes = std::mem::take(&mut self.spare);
            if !self.pieces.is_empty() {
                bytes.reserve_exact(PIECE); // the first one grows as it is needed, and whoever fills it fills the next one too
            }
            self.pieces.push_back(Piece { bytes, kept: 0 });
        }
        let piece = self.first.wrapping_add(self.pieces.len() as u32 - 1);
        let Some(Piece { bytes, kept }) = self.pieces.back_mut() else { return Logged::EMPTY };
        let at = bytes.len() as u32;
        bytes.extend_from_slice(answer);
        *kept += 1;
        Logged { piece, at, length: answer.len() as u32 }
    }

    /// An answer that is kept.
    pub(super) fn get(&self, logged: Logged) -> &[u8] {
        let at = logged.at as usize..logged.at as usize + logged.len();
        self.pieces.get(self.place(logged)).and_then(|piece| piece.bytes.get(at)).unwrap_or_default()
    }

    /// Forgets an answer. A piece goes with its last one, once those before it have gone; the one that is being written stays.
    pub(super) fn remove(&mut self, logged: Logged) {
        let place = self.place(logged);
        if let Some(piece) = self.pieces.get_mut(place).filter(|_| logged != Logged::EMPTY) {
            piece.kept -= 1;
        }
        while self.pieces.len() > 1 && self.pieces.front().is_some_and(|piece| piece.kept == 0) {
            self.first = self.first.wrapping_add(1);
            if let Some(Piece { mut bytes, .. }) = self.pieces.pop_front() {
                bytes.clear();
                self.spare = bytes;
            }
        }
    }

    /// How many pieces there are.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Gives all memory back, if nothing is kept.
    pub(super) fn trim(&mut self) {
        if self.pieces.iter().all(|piece| piece.kept == 0) {
            *self = Log::default();
        }
    }

    fn place(&self, logged: Logged) -> usize {
        logged.piece.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_again_and_pieces_are_used_again() {
        let mut log = Log { first: u32::MAX - 1, ..Log::default() };
        let answers: Vec<Vec<u8>> = (0..500_usize).map(|number| vec![number as u8; number * 7]).collect();
        let mut kept: VecDeque<_> = answers.iter().map(|answer| (log.add(answer), answer)).collect();
        let most = log.pieces.len();
        assert!(most > 3, "there is more than a few pieces take");
        for round in 0..5_000_usize {
            let (logged, answer) = kept.pop_front().expect("there is one");
            assert_eq!(log.get(logged), &answer[..], "round {round}");
            log.remove(logged);
            kept.push_back((log.add(answer), answer));
            assert!(log.pieces.len() <= most + 1, "round {round}: {} pieces", log.pieces.len());
        }
        kept.into_iter().for_each(|(logged, _)| log.remove(logged));
        assert_eq!(log.pieces.len(), 1, "the one that is being written");
        log.trim();
        assert!(log.pieces.is_empty());
    }

    #[test]
    fn an_answer_in_the_middle_may_go_first() {
        let mut log = Log::default();
        let answer = vec![1; LONGEST];
        let kept: Vec<_> = (0..24).map(|_| log.add(&answer)).collect();
        kept[1..16].iter().for_each(|logged| log.remove(*logged));
        assert_eq!((log.get(kept[0]).len(), log.pieces.len()), (LONGEST, 3));
        log.remove(kept[0]);
        assert_eq!(log.pieces.len(), 1);
        assert_eq!(log.get(kept[20]), &answer[..]);
    }
}
