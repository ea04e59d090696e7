//! What routes, requests and nodes may be called: what dead letters can be kept under, and what people can read in logs.

use crate::limits::NAME_MAX;
use steadfast_kernel::{Code, Failure};

/// The longest name of a route, in bytes.
const ROUTE_MAX: usize = 128;

fn check(fits: bool, what: &str, allowed: &str) -> Result<(), Failure> {
    if fits { Ok(()) } else { Err(Failure::new(Code::InvalidArgument, format!("{what} that is not allowed: use {allowed}"))) }
}

/// Visible, without spaces, and not too long.
fn is_visible(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
}

pub(crate) fn is_route(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
    (1..=ROUTE_MAX).contains(&name.len()) && name.bytes().all(allowed) && name.split('/').all(|part| !part.bytes().all(|b| b == b'.'))
}

pub(crate) fn check_route(name: &str) -> Result<(), Failure> {
    check(is_route(name), "a route", "1 to 128 characters of A-Z a-z 0-9 . _ - /, without empty or dot-only parts between slashes")
}

pub(crate) fn check_request(id: &str) -> Result<(), Failure> {
    check(is_visible(id), "a request id", "1 to 200 visible ASCII characters, without spaces")
}

/// What a node has proved is added to its name behind an @.
pub(crate) fn is_node(name: &str) -> bool {
    is_visible(name) && !name.contains('@')
}

pub(crate) fn check_node(name: &str) -> Result<(), Failure> {
    check(is_node(name), "the name of a node", "1 to 200 visible ASCII characters, without spaces and @")
}

/// Of a peer that is sent to.
pub(crate) fn check_peer(address: &str) -> Result<(), Failure> {
    check(is_visible(address), "a peer", "an address such as http://host:port, or a node's name, of up to 200 visible ASCII characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_letters_can_be_kept_under() {
        for good in ["transfer", "bank/transfer.v2", "a-b_c"] {
            assert!(is_route(good) && steadfast_kernel::RouteName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "ü", "a//b", "a/../b", &"x".repeat(129)] {
            assert!(!is_route(bad) && steadfast_kernel::RouteName::new(bad).is_err(), "{bad}");
        }
        assert!(check_request("o-1/pay#1").is_ok() && check_request("a b").is_err() && check_request("").is_err());
        assert!(is_node("shop-1") && !is_node("shop@home") && !is_node("the shop"));
        assert!(check_peer("http://[::1]:7400").is_ok() && check_peer("\n").is_err());
    }
}
