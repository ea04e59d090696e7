//! Certificates for a server on this machine, made by the `openssl` program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A certificate for `localhost` (and not for 127.0.0.1), and the one that signed it.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The certificate to trust.
    pub ca: PathBuf,
    /// The certificate of the server.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The certificate of a client whose name is `postgres`.
    pub client: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
}

impl Certificates {
    /// Makes them in a folder.
    ///
    /// # Panics
    /// If they cannot be made.
    pub fn make(folder: &Path) -> Self {
        let path = |name: &str| folder.join(name);
        let (ca, ca_key, certificate, key) = (path("ca.pem"), path("ca.key"), path("server.pem"), path("server.key"));
        let made = |subject: &str, key: &Path, out: &Path, more: &[&str]| {
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
            openssl.args(["-subj", subject]).arg("-keyout").arg(key).arg("-out").arg(out).args(more);
            run(&mut openssl);
        };
        made("/CN=Test CA", &ca_key, &ca, &["-addext", "keyUsage=critical,keyCertSign"]);
        let (ca_text, ca_key_text) = (ca.display().to_string(), ca_key.display().to_string());
        let names = "subjectAltName=DNS:localhost";
        let end = ["-addext", names, "-addext", "basicConstraints=critical,CA:FALSE", "-CA", &ca_text, "-CAkey", &ca_key_text];
        made("/CN=localhost", &key, &certificate, &end);
        let (client, client_key) = (path("client.pem"), path("client.key"));
        let end = ["-addext", "basicConstraints=critical,CA:FALSE", "-CA", &ca_text, "-CAkey", &ca_key_text];
        made("/CN=postgres", &client_key, &client, &end);
        Certificates { ca, certificate, key, client, client_key }
    }
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("openssl is missing ({error}); install it: apt-get install openssl"));
    assert!(output.status.success(), "openssl made no certificate: {}", String::from_utf8_lossy(&output.stderr));
}
