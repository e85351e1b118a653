//! TLS for hooks, from version 1.2 on: whom to trust, what to show.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore};

use crate::hook::access::Identity;
use crate::hook::access::trust::Trust;

/// Which part can't be used, and why.
#[derive(Debug)]
pub(super) enum Fault {
    Authorities(String),
    Identity(String),
    /// The system has no roots.
    System(String),
}

/// Given authorities replace the system's.
pub(super) fn config(
    authorities: Option<&[CertificateDer<'static>]>,
    identity: Option<&Identity>,
) -> Result<ClientConfig, Fault> {
    let trusting = match authorities {
        Some(authorities) => trusting(authorities).map_err(Fault::Authorities)?,
        None => trusting_the_system().map_err(|error| Fault::System(error.to_string()))?,
    };
    let Some(identity) = identity else { return Ok(trusting.with_no_client_auth()) };
    trusting
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(|error| Fault::Identity(unfit(&error)))
}

fn unfit(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "the private key is not the certificate's".into(),
        other => format!("the certificate or its key can't be used: {other}"),
    }
}

type Trusting = ConfigBuilder<ClientConfig, WantsClientCert>;

fn trusting(authorities: &[CertificateDer<'static>]) -> Result<Trusting, String> {
    let trust = Trust::new(authorities)?;
    // Not dangerous here: it is stricter than nothing and no laxer than `authorities` ask for.
    Ok(versions().dangerous().with_custom_certificate_verifier(Arc::new(trust)))
}

fn trusting_the_system() -> io::Result<Trusting> {
    Ok(versions().with_root_certificates(system_roots()?))
}

#[cfg(feature = "otel")]
pub(super) fn trusting_nobody() -> ClientConfig {
    versions().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn versions() -> ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has TLS 1.2 and 1.3")
}

/// Trust in the system's roots, with no certificate to show.
pub(in crate::hook) fn system() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = trusting_the_system()?.with_no_client_auth();
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}

/// The system's roots, read once.
fn system_roots() -> io::Result<Arc<RootCertStore>> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = ROOTS.get() {
        return Ok(roots.clone());
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let cause = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(io::Error::other(format!("no root certificate found on this system{cause}")));
    }
    Ok(ROOTS.get_or_init(|| Arc::new(roots)).clone())
}

/// Says what to do about a server that is not trusted.
pub(in crate::hook) fn with_advice(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(fault)) = cause else { return error };
    let advice = match fault {
        CertificateError::UnknownIssuer => "give its authority's certificate as `caBundle`",
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the server shows an authority's certificate as its own: give this one as `caBundle`"
        }
        _ => return error,
    };
    io::Error::other(format!("{error}; hint: {advice}"))
}
