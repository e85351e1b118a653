//! The certificate that the service shows, read from files and read anew when they change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::problem::Problem;

/// A certificate's two files, PEM.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The files and what they held last. A file that cannot be used leaves what was there.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: Files,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    stamp: Stamp,
    key: Arc<CertifiedKey>,
}

/// Tells a changed file by its time and size.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificate {
    /// Reads the files.
    pub(crate) fn open(files: Files) -> Result<Certificate, Problem> {
        let stamp = files.stamp();
        let key = Arc::new(files.read()?);
        Ok(Certificate { files, held: Mutex::new(Held { stamp, key }) })
    }

    /// TLS from 1.2 on, with this certificate.
    pub(super) fn config(self: Arc<Certificate>) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(self)
    }

    /// A look at the files for each connection is cheap: API servers keep theirs.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != held.stamp {
            held.stamp = stamp;
            match self.files.read() {
                Ok(key) => {
                    held.key = Arc::new(key);
                    tracing::info!(file = %self.files.certificate.display(), "certificate loaded");
                }
                Err(problem) => {
                    tracing::error!(error = %problem, "certificate cannot be used, the last one stays")
                }
            }
        }
        held.key.clone()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl Files {
    fn stamp(&self) -> Stamp {
        [&self.certificate, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }

    fn read(&self) -> Result<CertifiedKey, Problem> {
        let bytes = text(&self.certificate)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| unfit(&self.certificate, "a certificate in PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(&text(&self.key)?)
            .map_err(|_| unfit(&self.key, "a private key in PEM"))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => unfit(&self.key, "the key of the certificate"),
            other => Problem::new(format!("`{}` cannot be used: {other}", self.certificate.display())),
        })
    }
}

fn text(path: &Path) -> Result<Vec<u8>, Problem> {
    fs::read(path).map_err(|error| Problem::new(format!("`{}` cannot be read: {error}", path.display())))
}

fn unfit(path: &Path, expected: &str) -> Problem {
    Problem::new(format!("`{}` cannot be used", path.display())).expected(expected)
}
