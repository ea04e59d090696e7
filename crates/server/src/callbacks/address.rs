//! Whom this server may call.
//!
//! Tested by `crates/cli/tests/it/callbacks.rs`.

use reqwest::Url;

/// The longest address, in characters.
const LENGTH_MAX: usize = 2048;

/// The hosts that may be called; all of them if there is none.
#[derive(Debug)]
pub(super) struct Hosts(Vec<Host>);

#[derive(Debug, PartialEq, Eq)]
enum Host {
    /// That one.
    Is(String),
    /// Those below it: what their names end with, with its dot.
    Below(String),
}

impl Hosts {
    pub(super) fn new(hosts: &[String]) -> Result<Self, String> {
        hosts.iter().map(|text| Host::parse(text)).collect::<Result<_, _>>().map(Hosts)
    }

    /// The address, if it may be called; else why not, and what to do about it. Nothing of the address but its host is said.
    pub(super) fn check(&self, text: &str) -> Result<Url, String> {
        if text.chars().count() > LENGTH_MAX {
            return Err(format!("the address has more than {LENGTH_MAX} characters; keep what it says in the value of the key"));
        }
        let whole = "give the whole address: https://host/path";
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("the address has blanks or control characters in it; {whole}"));
        }
        let url = Url::parse(text).map_err(|error| format!("it is not an address ({error}); {whole}"))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(format!("the address begins with neither http:// nor https://; {whole}"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a user or password in it, which others may see; use a secret in the path or the query".into());
        }
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        if self.0.is_empty() || self.0.iter().any(|allowed| allowed.fits(host)) {
            return Ok(url);
        }
        Err(format!("the host {host} is not among those that this server may call (callbacks.hosts); add it there, or call another one"))
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        let wrong = || {
            format!(
                "{text:?} cannot be a host that may be called; write a name (example.com), all below one (*.example.com), or an IP address"
            )
        };
        // as addresses are read, so that upper case, umlauts and IPv6 are written as they are compared
        let url = Url::parse(&format!("http://{name}/")).map_err(|_| wrong())?;
        let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_string();
        let is_host_alone = !name.contains(['/', '@', '?', '#', '*']) && url.port().is_none() && !name.ends_with(":80");
        let is_name = host.parse::<std::net::Ipv4Addr>().is_err() && !host.starts_with('[');
        match (is_host_alone && !host.is_empty(), below) {
            (true, false) => Ok(Host::Is(host)),
            (true, true) if is_name => Ok(Host::Below(format!(".{host}"))),
            _ => Err(wrong()),
        }
    }

    fn fits(&self, host: &str) -> bool {
        match self {
            Host::Is(name) => host == name,
            Host::Below(end) => host.len() > end.len() && host.ends_with(end.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[&str]) -> Hosts {
        Hosts::new(&list.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn only_whole_addresses_of_the_web_can_be_called() {
        let all = hosts(&[]);
        for good in ["http://a", "https://a.example:8443/x?secret=1#there", "http://127.0.0.1:1/", "http://[::1]/", "HTTPS://EXAMPLE.COM"] {
            assert!(all.check(good).is_ok(), "{good}");
        }
        for (bad, says) in [
            ("", "not an address"),
            ("/gone", "not an address"),
            (" http://a/", "blanks"),
            ("http://a/b\r\nX: y", "blanks"),
            ("ftp://a/b", "neither http:// nor https://"),
            ("file:///etc/passwd", "neither"),
            ("http://", "not an address"),
            ("http://me@a/", "user or password"),
            ("http://me:secret@a/", "user or password"),
        ] {
            let why = all.check(bad).unwrap_err();
            assert!(why.contains(says) && !why.contains("secret@") && !why.contains("passwd"), "{bad}: {why}");
        }
        let long = |length: usize| format!("http://a/{}", "x".repeat(length - 9));
        assert!(all.check(&long(2048)).is_ok());
        assert!(all.check(&long(2049)).unwrap_err().contains("2048 characters"));
    }

    #[test]
    fn only_hosts_on_the_list_can_be_called() {
        let some = hosts(&["Hooks.example.com", "*.internal.example", "10.0.0.7", "[::1]"]);
        for good in [
            "https://hooks.example.com/x",
            "https://HOOKS.example.com:8443/",
            "https://hooks.example.com./",
            "http://a.internal.example/",
            "http://a.b.internal.example/",
            "http://10.0.0.7:80/",
            "http://[::1]:9/",
        ] {
            assert!(some.check(good).is_ok(), "{good}");
        }
        for bad in [
            "https://example.com/",
            "https://evil-hooks.example.com/",
            "https://hooks.example.com.evil.example/",
            "http://internal.example/",
            "http://evilinternal.example/",
            "http://.internal.example/",
            "http://10.0.0.70/",
            "http://[::2]/",
            "http://evil.example/?hooks.example.com",
            "http://hooks.example.com@evil.example/",
        ] {
            assert!(some.check(bad).is_err(), "{bad}");
        }
        assert!(some.check("http://evil.example/a?token=1").unwrap_err().contains("evil.example is not among"));
        assert!(!some.check("http://evil.example/a?token=1").unwrap_err().contains("token"));
    }

    #[test]
    fn what_cannot_be_a_host_is_refused() {
        for bad in
            ["", "*", "*.", "*.*.example", "a.*.example", "http://a", "a/b", "a:80", "a:81", "a b", "me@a", "a?b", "*.10.0.0.7", "*.[::1]"]
        {
            assert!(Hosts::new(&[bad.to_string()]).is_err(), "{bad}");
        }
    }
}
