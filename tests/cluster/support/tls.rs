//! Certificates for hooks and for those who call them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A certificate that vouches for itself, with its key.
pub struct Identity {
    pub certificate: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

impl Identity {
    /// For `localhost`, as `openssl req -x509` makes it: an authority.
    pub fn of_a_hook() -> Identity {
        Identity::of_the_hook("localhost")
    }

    /// The same for a host of this name.
    pub fn of_the_hook(name: &str) -> Identity {
        Identity::new(name, IsCa::Ca(BasicConstraints::Unconstrained))
    }

    pub fn of_a_caller() -> Identity {
        Identity::new("controller", IsCa::ExplicitNoCa)
    }

    fn new(name: &str, is_ca: IsCa) -> Identity {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        parameters.is_ca = is_ca;
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.self_signed(&key).expect("a certificate");
        Identity { certificate: certificate.pem(), der: certificate.der().clone(), key }
    }

    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// A server that shows this certificate, and wants to see that of `caller`.
    pub fn server(&self, caller: Option<&Identity>) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider.clone());
        let versions = versions.with_safe_default_protocol_versions().expect("TLS 1.2 and 1.3");
        let clients = match caller {
            None => versions.with_no_client_auth(),
            Some(caller) => {
                let mut roots = RootCertStore::empty();
                roots.add(caller.der.clone()).expect("a certificate");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                versions.with_client_cert_verifier(verifier.build().expect("a root"))
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key");
        clients.with_single_cert(vec![self.der.clone()], key).expect("the key fits")
    }
}
