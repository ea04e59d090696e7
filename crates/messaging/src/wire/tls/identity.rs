//! Who an end is: its certificate and its key.

use super::{certificates, fingerprint, misfit, unusable};
use crate::wire::Fingerprint;
use rand::TryRng;
use rand::rngs::SysRng;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::Failure;

/// The file of an identity that is kept in a folder: its key and its certificate.
const FILE: &str = "identity.pem";

/// A certificate, with those that vouch for it, and its key.
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Reads the certificate, those that vouch for it behind it, and the key, all in PEM. Both may be in one file.
    ///
    /// # Errors
    /// Permanent if a file is missing or has not what it should, or the key does not match.
    pub fn files(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
        Identity::new(chain, key)
    }

    /// Makes a certificate of its own for these names, which nobody vouches for: others know it by its [fingerprint](Identity::fingerprint).
    ///
    /// # Errors
    /// Permanent if a name is not one that a certificate can have.
    pub fn self_made(names: &[&str]) -> Result<Self, Failure> {
        let (certificate, key) = make(names)?;
        Identity::new(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    /// The one that is kept in a folder; made, and written so that nobody else can read it, if there is none.
    ///
    /// # Errors
    /// Permanent if it can neither be read nor written.
    pub fn kept_in(folder: &Path, names: &[&str]) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        if !path.exists() {
            let (certificate, key) = make(names)?;
            let text = key.serialize_pem() + &certificate.pem();
            write(folder, &path, text.as_bytes()).map_err(|error| unusable(&path, &error))?;
        }
        Identity::files(&path, &path)
    }

    /// By what others know it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, Failure> {
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &steadfast_tls::provider()).map_err(|error| misfit(&error))?;
        let fingerprint = fingerprint(&chain[0]);
        Ok(Identity { chain, key: Arc::new(key), fingerprint })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

fn make(names: &[&str]) -> Result<(rcgen::Certificate, KeyPair), Failure> {
    let cannot = |error: rcgen::Error| Failure::permanent(format!("a certificate for {} cannot be made: {error}", names.join(", ")));
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).map_err(cannot)?;
    params.distinguished_name.push(DnType::CommonName, *names.first().unwrap_or(&"steadfast"));
    let key = KeyPair::generate().map_err(cannot)?;
    Ok((params.self_signed(&key).map_err(cannot)?, key))
}

/// Writes a file that nobody else can read, as a whole or not at all. If somebody else has written one meanwhile, that one stays.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut makes, mut opens) = (DirBuilder::new(), OpenOptions::new());
    makes.recursive(true);
    opens.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        makes.mode(0o700);
        opens.mode(0o600);
    }
    makes.create(folder)?;
    let draft = folder.join(format!("{FILE}.{:016x}", SysRng.try_next_u64().map_err(io::Error::other)?)); // a process that was killed may have left one behind
    let mut file = opens.open(&draft)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    fs::remove_file(&draft)?;
    written
}
