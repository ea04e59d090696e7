//! Chooses the cryptography provider of every TLS connection: *ring*.
//!
//! rustls leaves the choice to the program, and some clients (reqwest) panic without one.
//! This crate is the only place that names the provider; `docs/decisions/0011-build-time.md` has
//! the reasons.

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The provider for connections that take one explicitly.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    install_default();
    CryptoProvider::get_default().map_or_else(|| Arc::new(rustls::crypto::ring::default_provider()), Arc::clone)
}

/// Installs the process-wide default, unless the program has installed another provider.
///
/// Call it before a client is built that relies on the default.
pub fn install_default() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may install one at the same moment; either of them will do.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn default_is_installed_once() {
        super::install_default();
        super::install_default();
        let default = rustls::crypto::CryptoProvider::get_default().unwrap();
        assert!(std::sync::Arc::ptr_eq(default, &super::provider()));
    }
}
