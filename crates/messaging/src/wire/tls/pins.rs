//! A closed group: certificates that are known by their fingerprints.

use super::fingerprint;
use crate::wire::Fingerprint;
use parking_lot::RwLock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The fingerprints of a group. Clones share what they know, so that it can change while connections are made.
#[derive(Clone, Debug, Default)]
pub struct Pins(Arc<RwLock<BTreeSet<Fingerprint>>>);

impl Pins {
    /// A group of these.
    pub fn new(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Self {
        Pins(Arc::new(RwLock::new(fingerprints.into_iter().collect())))
    }

    /// From now on this one belongs to the group.
    pub fn add(&self, fingerprint: Fingerprint) {
        self.0.write().insert(fingerprint);
    }

    /// From now on this one may not connect. Links that it has stay.
    pub fn remove(&self, fingerprint: &Fingerprint) {
        self.0.write().remove(fingerprint);
    }

    /// Whether this one belongs to the group.
    pub fn contains(&self, fingerprint: &Fingerprint) -> bool {
        self.0.read().contains(fingerprint)
    }
}

/// Trusts certificates by their fingerprints; that the other side has the key is still proved by its signature.
#[derive(Debug)]
pub(super) struct Pinned {
    pins: Pins,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    pub(super) fn new(pins: Pins, provider: &CryptoProvider) -> Self {
        Pinned { pins, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let fingerprint = fingerprint(certificate);
        if self.pins.contains(&fingerprint) {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Unknown(fingerprint))))))
    }
}

#[derive(Debug)]
struct Unknown(Fingerprint);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its certificate has the fingerprint {}, which is not one of those that are pinned", self.0)
    }
}

impl std::error::Error for Unknown {}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
