//! The token that every request has to carry: read once, kept as a hash, compared in constant time.

use crate::error::{Error, MAKE_ONE};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use subtle::ConstantTimeEq;

/// How many different characters random text of that length has at the very least.
const DIFFERENT_MIN: usize = 10;

/// A token, as its hash.
pub(crate) struct Token([u8; 32]);

impl Token {
    /// Reads a token file.
    ///
    /// # Errors
    /// If it cannot be read, others may read it, or the token is too easy to guess.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let unusable = |why: String| Error::TokenUnusable { path: path.into(), why };
        let bytes = std::fs::read(path).map_err(|error| unusable(format!("{error}; {MAKE_ONE}")))?;
        private(path).map_err(unusable)?;
        let token = bytes.trim_ascii();
        strong(token).map_err(|why| unusable(format!("{why}; {MAKE_ONE}")))?;
        Ok(Token(Sha256::digest(token).into()))
    }

    /// Whether that is the token. It takes as long whatever is wrong with it.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        given.ct_eq(&self.0).into()
    }
}

/// Whether the token can be sent and has 32 random bytes, as far as that can be seen.
fn strong(token: &[u8]) -> Result<(), String> {
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err("the token has characters that cannot be sent in a header".into());
    }
    let secret = token.strip_prefix(b"stf_").unwrap_or(token);
    let (needed, of) = if secret.iter().all(u8::is_ascii_hexdigit) { (64, "hex") } else { (43, "base64") };
    if secret.len() < needed {
        return Err(format!("the token has {} characters; 32 random bytes are {needed} of {of}", secret.len()));
    }
    if secret.iter().collect::<BTreeSet<_>>().len() < DIFFERENT_MIN {
        return Err("the token is not random".into());
    }
    Ok(())
}

/// Whether nobody but its owner may read the file.
#[cfg(unix)]
fn private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { Err(format!("others may read it (mode {:o}); chmod 600 it", mode & 0o777)) }
}

#[cfg(not(unix))]
fn private(_path: &Path) -> Result<(), String> {
    Ok(()) // who may read a file is not in its mode there
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64: &str = "q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk=";

    #[test]
    fn tokens_of_32_random_bytes_are_taken() {
        let hex = "0123456789abcdef".repeat(4);
        for good in [BASE64, &format!("stf_{BASE64}"), &hex] {
            assert_eq!(strong(good.as_bytes()), Ok(()), "{good}");
        }
    }

    #[test]
    fn tokens_that_can_be_guessed_are_refused() {
        for bad in [
            "",
            "secret",
            &"a".repeat(64),
            &"ab".repeat(50),
            &BASE64[..42],
            "stf_",
            "0123456789abcdef0123456789abcdef0123456789abcdef",
            "ü",
        ] {
            assert!(strong(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(strong(format!("{BASE64} {BASE64}").as_bytes()).is_err(), "a blank cannot be part of it");
    }
}
