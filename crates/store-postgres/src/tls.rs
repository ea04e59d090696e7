//! How the server is known, and we by it.

use crate::settings::{Address, Verify};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A file that cannot be used, or why TLS cannot be spoken.
type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// What makes connections with TLS. Files are read now.
pub(crate) fn connector(address: &Address) -> Result<MakeRustlsConnect, Wrong> {
    let provider = steadfast_tls::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let verifier: Arc<dyn ServerCertVerifier> = match address.verify {
        Verify::Nothing => Arc::new(Lenient { chain: None, provider }),
        Verify::Chain => Arc::new(Lenient { chain: Some(chain(address, &provider)?), provider }),
        Verify::Full => chain(address, &provider)?,
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match (&address.certificate_file, &address.key_file) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
            builder.with_client_auth_cert(certificates(certificate)?, key)?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Looks at who has signed, and at the name.
fn chain(address: &Address, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, Wrong> {
    let mut roots = RootCertStore::empty();
    match &address.ca_file {
        Some(file) => certificates(file)?.into_iter().try_for_each(|certificate| roots.add(certificate))?,
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    Ok(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    all.map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, error: &dyn std::error::Error) -> Wrong {
    format!("{} cannot be used: {error}", file.display()).into()
}

/// Does not look at the name of the server, and without a chain at nothing of its certificate.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
