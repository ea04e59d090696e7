//! Places that those share who come from different addresses, and this side itself: nobody gets all of them.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::Hash;
use std::sync::Arc;

/// What one address may have, as a multiple of what is free: alone it gets four fifths, and whoever comes from elsewhere always finds some.
const SHARE: usize = 4;

/// So many places, and who has them.
#[derive(Debug)]
pub(crate) struct Places<Host> {
    max: usize,
    taken: Mutex<Taken<Host>>,
}

#[derive(Debug)]
struct Taken<Host> {
    all: usize,
    /// Those that others have, by where they come from, and those of this side itself.
    hosts: HashMap<Option<Host>, usize>,
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place<Host: Eq + Hash> {
    places: Arc<Places<Host>>,
    host: Option<Host>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken. Who was told so has a place as soon as one is free.
    All,
    /// Those that are left, or will be, are for others.
    ForOthers,
}

impl<Host: Clone + Eq + Hash> Places<Host> {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Places { max, taken: Mutex::new(Taken { all: 0, hosts: HashMap::new() }) })
    }

    /// A place for somebody from there, or for this side itself, which leaves a fifth to others as well, and one at the least.
    ///
    /// # Errors
    /// If there are too many, or too many from there.
    pub(crate) fn take(self: &Arc<Self>, host: Option<Host>) -> Result<Place<Host>, Full> {
        let mut taken = self.taken.lock();
        let free = self.max.saturating_sub(taken.all);
        let mine = taken.hosts.get(&host).copied().unwrap_or(0);
        let most = if host.is_some() { SHARE * free.max(1) } else { self.own_max() };
        match free {
            _ if mine >= most => return Err(Full::ForOthers),
            0 => return Err(Full::All),
            _ => {}
        }
        taken.all += 1;
        *taken.hosts.entry(host.clone()).or_default() += 1;
        Ok(Place { places: Arc::clone(self), host })
    }

    /// How many this side may have itself, however many others there are: they cannot ask it to have fewer.
    fn own_max(&self) -> usize {
        let left = (self.max / (SHARE + 1)).max(1);
        self.max.saturating_sub(left).max(1)
    }
}

impl<Host: Eq + Hash> Drop for Place<Host> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(mine) = taken.hosts.get_mut(&self.host) {
            *mine -= 1;
            if *mine == 0 {
                taken.hosts.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_a_fifth_to_others_and_what_is_given_back_is_free() {
        let places = Places::new(10);
        let take = |from: &'static str| places.take(Some(from));
        let many: Vec<_> = (0..).map(|_| take("a")).take_while(Result::is_ok).collect();
        assert_eq!((many.len(), take("a").err()), (8, Some(Full::ForOthers)));
        let (other, mine) = (take("b").unwrap(), places.take(None).unwrap());
        assert_eq!((take("c").err(), places.take(None).err()), (Some(Full::All), Some(Full::All)));
        drop((many, other));
        let counts = || {
            let taken = places.taken.lock();
            (taken.all, taken.hosts.len())
        };
        assert_eq!(counts(), (1, 1));
        drop(mine);
        assert_eq!(counts(), (0, 0));
    }

    #[test]
    fn this_side_leaves_a_fifth_to_others_and_one_at_the_least() {
        for (max, own) in [(10, 8), (4, 3), (2, 1), (1, 1)] {
            let places = Places::<u8>::new(max);
            let many: Vec<_> = (0..).map(|_| places.take(None)).take_while(Result::is_ok).collect();
            assert_eq!(many.len(), own, "of {max}");
            assert_eq!(places.take(Some(1)).is_ok(), max > 1);
        }
    }
}
