//! TLS for wires: who an end is (a certificate from files, or one of its own making), and whom it trusts (authorities, or a closed group by fingerprints).
//!
//! ```
//! # use steadfast_messaging::wire::tls::{Client, Identity, Pins, Server, Trust};
//! # fn main() -> Result<(), steadfast_kernel::Failure> {
//! let (here, there) = (Identity::self_made(&["here"])?, Identity::self_made(&["there"])?);
//! let group = Pins::new([here.fingerprint(), there.fingerprint()]);
//! let listens = Server::new(&here, Some(Trust::Pinned(group.clone())))?; // whoever connects shows a certificate of the group
//! let connects = Client::new(Trust::Pinned(group), Some(&there))?;
//! # let _both = (listens, connects);
//! # Ok(())
//! # }
//! ```

mod identity;
mod pins;

pub use identity::Identity;
pub use pins::Pins;

use super::{Fingerprint, Remote};
use pins::Pinned;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// What is spoken above TLS.
const ALPN: &[u8] = b"h2";

/// Whom an end trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Whoever has a certificate of these authorities, and of the name that was connected to.
    Authorities(Arc<RootCertStore>),
    /// Whoever has one of these certificates: neither its name nor its dates matter.
    Pinned(Pins),
}

impl Trust {
    /// Trusts the authorities in a file of certificates in PEM.
    ///
    /// # Errors
    /// Permanent if the file is missing or has no certificate.
    pub fn file(path: &Path) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| unusable(path, &error))?;
        }
        Ok(Trust::Authorities(Arc::new(roots)))
    }

    fn is_in_authorities(&self) -> bool {
        matches!(self, Trust::Authorities(_))
    }
}

/// TLS for an end that connects.
#[derive(Clone)]
pub struct Client {
    connector: TlsConnector,
    trusts_authorities: bool,
}

impl Client {
    /// Connects to whom it trusts, and shows its own certificate if it has one.
    ///
    /// # Errors
    /// Permanent if there is nobody to trust, or the certificate cannot be used.
    pub fn new(trust: Trust, identity: Option<&Identity>) -> Result<Self, Failure> {
        let (provider, trusts_authorities) = (steadfast_tls::provider(), trust.is_in_authorities());
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Authorities(roots) => rustls::client::WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| Failure::permanent(format!("these authorities cannot be used: {error}")))?,
            Trust::Pinned(pins) => Arc::new(Pinned::new(pins, &provider)),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| misfit(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match identity {
            Some(identity) => config.with_client_auth_cert(identity.chain(), identity.key()).map_err(|error| misfit(&error))?,
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Client { connector: TlsConnector::from(Arc::new(config)), trusts_authorities })
    }

    /// Speaks TLS on a connection, and says of the other side what it has proved.
    pub(super) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
        remote: &mut Remote,
    ) -> Result<client::TlsStream<TcpStream>, Failure> {
        let unfit = |_| Failure::new(Code::InvalidArgument, format!("{host} is no name that a certificate can have"));
        let name = ServerName::try_from(host.to_owned()).map_err(unfit)?;
        let stream = self.connector.connect(name, stream).await.map_err(|error| failure(&remote.address, &error))?;
        shown(stream.get_ref().1.peer_certificates(), self.trusts_authorities, remote);
        Ok(stream)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// TLS for an end that listens.
#[derive(Clone)]
pub struct Server {
    acceptor: TlsAcceptor,
    asks_who_connects: bool,
    trusts_authorities: bool,
}

impl Server {
    /// Shows its certificate; asks those who connect for theirs if it is told whom of them to trust, and refuses those who have none.
    ///
    /// # Errors
    /// Permanent if there is nobody to trust, or the certificate cannot be used.
    pub fn new(identity: &Identity, clients: Option<Trust>) -> Result<Self, Failure> {
        let (provider, asks_who_connects) = (steadfast_tls::provider(), clients.is_some());
        let trusts_authorities = clients.as_ref().is_some_and(Trust::is_in_authorities);
        let verifier: Arc<dyn ClientCertVerifier> = match clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(Trust::Authorities(roots)) => WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| Failure::permanent(format!("these authorities cannot be used: {error}")))?,
            Some(Trust::Pinned(pins)) => Arc::new(Pinned::new(pins, &provider)),
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| misfit(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(identity.chain(), identity.key())
            .map_err(|error| misfit(&error))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Whoever resumes a session shows no certificate: somebody who was removed from a group would come back that way.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Server { acceptor: TlsAcceptor::from(Arc::new(config)), asks_who_connects, trusts_authorities })
    }

    /// Whether those who connect have to show a certificate.
    pub(super) fn asks_who_connects(&self) -> bool {
        self.asks_who_connects
    }

    /// Speaks TLS on a connection, and says of the other side what it has proved; gives the connection back if the other side cannot, or may not.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        remote: &mut Remote,
    ) -> Result<server::TlsStream<TcpStream>, (io::Error, TcpStream)> {
        let stream = self.acceptor.accept(stream).into_fallible().await?;
        shown(stream.get_ref().1.peer_certificates(), self.trusts_authorities, remote);
        Ok(stream)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

/// What the other side has shown, and what is proved by it.
fn shown(certificates: Option<&[CertificateDer<'_>]>, trusts_authorities: bool, remote: &mut Remote) {
    let Some(certificate) = certificates.and_then(<[_]>::first) else { return };
    remote.fingerprint = Some(fingerprint(certificate));
    remote.vouched = trusts_authorities.then(|| vouched(certificate)).flatten().map(Into::into);
}

/// The name that the authority of a certificate vouches for: its first DNS name, else its subject. Nothing if it has neither.
fn vouched(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    if let Some(name) = certificate.valid_dns_names().next() {
        return Some(format!("dns:{}", name.to_ascii_lowercase()));
    }
    let subject = Some(certificate.subject()).filter(|subject| !subject.is_empty())?;
    Some(format!("subject:{}", Fingerprint(Sha256::digest(subject).into())))
}

fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint(Sha256::digest(certificate.as_ref()).into())
}

/// Why TLS has failed: what somebody has to mend is permanent.
pub(super) fn failure(address: &str, error: &io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => refused(address, error),
        None => Failure::transient(format!("cannot connect to {address}: {error}")),
    }
}

/// The same for what TLS itself says.
pub(super) fn refused(address: &str, error: &rustls::Error) -> Failure {
    let permanent = |code: Code, why: String| Failure::new(code, format!("cannot connect to {address}: {why}"));
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(error)) => permanent(Code::PermissionDenied, error.to_string()),
        rustls::Error::InvalidCertificate(why @ (CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            permanent(Code::PermissionDenied, format!("its certificate has expired ({why})"))
        }
        rustls::Error::InvalidCertificate(why) => permanent(Code::PermissionDenied, format!("its certificate is not trusted: {why}")),
        rustls::Error::AlertReceived(alert) => alerted(address, *alert),
        rustls::Error::InvalidMessage(_) => permanent(Code::FailedPrecondition, "it does not speak TLS: use http://".to_owned()),
        error => permanent(Code::FailedPrecondition, error.to_string()),
    }
}

/// What the other side says before it goes: about who we are, about how we speak, or about itself, which may pass.
fn alerted(address: &str, alert: AlertDescription) -> Failure {
    use AlertDescription as Alert;
    match alert {
        Alert::NoCertificate
        | Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::CertificateRequired
        | Alert::UnknownCA
        | Alert::AccessDenied
        | Alert::DecryptError => Failure::new(
            Code::PermissionDenied,
            format!("cannot connect to {address}: it refuses our certificate, or that we have none: {alert:?}"),
        ),
        Alert::HandshakeFailure
        | Alert::ProtocolVersion
        | Alert::InsufficientSecurity
        | Alert::MissingExtension
        | Alert::UnsupportedExtension
        | Alert::UnrecognisedName
        | Alert::NoApplicationProtocol => Failure::new(
            Code::FailedPrecondition,
            format!("cannot connect to {address}: it does not take TLS as it is spoken here: {alert:?}"),
        ),
        alert => Failure::transient(format!("cannot connect to {address}: it has given up: {alert:?}")),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let all = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(path, &error))?;
    if all.is_empty() {
        return Err(unusable(path, &"there is no certificate in it"));
    }
    Ok(all)
}

fn unusable(path: &Path, why: &dyn fmt::Display) -> Failure {
    Failure::permanent(format!("{} cannot be used: {why}", path.display()))
}

fn misfit(error: &rustls::Error) -> Failure {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            Failure::permanent("the key does not match the certificate: give the two that were made together")
        }
        error => Failure::permanent(format!("the certificate cannot be used: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::Class;

    #[test]
    fn alerts_pass_or_are_to_be_mended() {
        use AlertDescription::{AccessDenied, CertificateRequired, InternalError, NoApplicationProtocol, UnknownCA, UserCanceled};
        let told = |alert: AlertDescription| {
            let failure = refused("x", &rustls::Error::AlertReceived(alert));
            (failure.class, failure.code)
        };
        for alert in [UnknownCA, AccessDenied, CertificateRequired, AlertDescription::DecryptError] {
            assert_eq!(told(alert), (Class::Permanent, Code::PermissionDenied), "{alert:?}");
        }
        for alert in [NoApplicationProtocol, AlertDescription::ProtocolVersion] {
            assert_eq!(told(alert), (Class::Permanent, Code::FailedPrecondition), "{alert:?}");
        }
        for alert in [InternalError, UserCanceled, AlertDescription::CloseNotify, AlertDescription::Unknown(200)] {
            assert_eq!(told(alert), (Class::Transient, Code::Unavailable), "{alert:?}");
        }
    }
}
