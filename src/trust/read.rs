//! What a certificate says, as far as it matters here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::extensions::GeneralName;

/// Seconds since 1970.
pub(super) type Seconds = i64;

/// A certificate that reads.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub der: CertificateDer<'static>,
    pub from: Seconds,
    pub until: Seconds,
    /// Host names and addresses.
    pub hosts: Vec<String>,
    /// As SubjectPublicKeyInfo.
    pub public_key: Vec<u8>,
}

impl Read {
    pub(super) fn first(pem: &str) -> Option<Read> {
        Read::of(CertificateDer::pem_slice_iter(pem.as_bytes()).next()?.ok()?)
    }

    /// All that read.
    pub(super) fn all(pem: &str) -> Vec<Read> {
        CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(|der| Read::of(der.ok()?)).collect()
    }

    fn of(der: CertificateDer<'static>) -> Option<Read> {
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let hosts = names.iter().flat_map(|names| &names.value.general_names).filter_map(host).collect();
        let validity = certificate.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let public_key = certificate.public_key().raw.to_vec();
        Some(Read { from, until, hosts, public_key, der })
    }

    pub(super) fn pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
        format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
    }
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_string()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            Some(four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok()?.to_string())
        }
        _ => None,
    }
}

/// Whether a client that trusts this authority alone takes the server's certificate at this time.
pub(super) fn is_signed_by(server: &Read, authority: &Read, now: Seconds) -> bool {
    let mut roots = RootCertStore::empty();
    let host = server.hosts.first().and_then(|host| ServerName::try_from(host.clone()).ok());
    let (Ok(()), Some(host)) = (roots.add(authority.der.clone()), host) else { return false };
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.max(0) as u64));
    verifier.verify_server_cert(&server.der, &[], &host, &[], now).is_ok()
}
