//! The ids of requests that stand for something else, such as a step of a run.

use steadfast_kernel::random;

/// The longest id that is sent as it is.
const ID_MAX: usize = 128;

/// The id of the request that stands for that key: the key itself, or its digest if it is long. The same key has the same id for ever.
pub fn request_id(key: impl Into<String>) -> String {
    let key = key.into();
    if key.len() > ID_MAX { random::digest(&key) } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_sent_as_its_digest() {
        assert_eq!(request_id("r/pay#1/1"), "r/pay#1/1");
        let (long, other) = (request_id("x".repeat(129)), request_id("x".repeat(130)));
        assert!(long.len() <= ID_MAX && long != other && long == request_id("x".repeat(129)), "{long}");
    }
}
