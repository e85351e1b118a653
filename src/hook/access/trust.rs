//! Trust in given certificates: as authorities, and each of them as a server's own.
//!
//! `openssl req -x509` makes certificates that are authorities, and users put them on servers as they are. The
//! standard check refuses an authority in that place, whoever gave it. One that is byte for byte among those given needs
//! nobody to vouch for it; its name and its times are checked all the same.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

#[derive(Debug)]
pub(super) struct Trust {
    given: Vec<CertificateDer<'static>>,
    chains: Arc<WebPkiServerVerifier>,
}

impl Trust {
    pub(super) fn new(given: &[CertificateDer<'static>]) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        let mut given = given.to_vec();
        let mut unread = None;
        given.retain(|certificate| {
            roots.add(certificate.clone()).map_err(|error| unread = Some(error)).is_ok()
        });
        if let (true, Some(error)) = (given.is_empty(), unread) {
            return Err(format!("no certificate that can be used: {error}"));
        }
        let provider = Arc::new(ring::default_provider());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Trust { given, chains: chains.build().map_err(|error| error.to_string())? })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.given.contains(shown) {
            return self.chains.verify_server_cert(shown, intermediates, name, ocsp_response, now);
        }
        check_times(shown, now)?;
        verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.chains.root_hint_subjects()
    }
}

fn check_times(certificate: &[u8], time: UnixTime) -> Result<(), Error> {
    let (not_before, not_after) = times(certificate).ok_or(CertificateError::BadEncoding)?;
    if time < not_before {
        return Err(CertificateError::NotValidYetContext { time, not_before }.into());
    }
    if time > not_after {
        return Err(CertificateError::ExpiredContext { time, not_after }.into());
    }
    Ok(())
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// From when and until when a certificate is valid. rustls checks that, but only together with all else.
///
/// <https://www.rfc-editor.org/rfc/rfc5280#section-4.1>: a certificate begins with its content, and that with a
/// version, a number, an algorithm, an issuer and the two times.
fn times(certificate: &[u8]) -> Option<(UnixTime, UnixTime)> {
    let (certificate, _) = enter(certificate, SEQUENCE)?;
    let (content, _) = enter(certificate, SEQUENCE)?;
    let rest = enter(content, VERSION).map_or(content, |(_, rest)| rest);
    let (_number, rest) = enter(rest, INTEGER)?;
    let (_algorithm, rest) = enter(rest, SEQUENCE)?;
    let (_issuer, rest) = enter(rest, SEQUENCE)?;
    let (times, _) = enter(rest, SEQUENCE)?;
    let (not_before, rest) = time(times)?;
    let (not_after, _) = time(rest)?;
    Some((not_before, not_after))
}

/// The content of the DER element that comes first, which has to be of this sort, and what follows it.
fn enter(der: &[u8], sort: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, length], rest) = der.split_first_chunk()?;
    if first != sort {
        return None;
    }
    let (length, rest) = match usize::from(length) {
        short if short < 0x80 => (short, rest),
        digits @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(digits & 0x7f)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// `700101000000Z` until 2049, `20500101000000Z` from then on.
fn time(der: &[u8]) -> Option<(UnixTime, &[u8])> {
    let (text, rest) = match enter(der, UTC_TIME) {
        Some((short, rest)) => {
            let short = std::str::from_utf8(short).ok()?;
            let century = if short.get(..2)? < "50" { "20" } else { "19" };
            (format!("{century}{short}"), rest)
        }
        None => {
            let (long, rest) = enter(der, GENERALIZED_TIME)?;
            (std::str::from_utf8(long).ok()?.to_string(), rest)
        }
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    let seconds = time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    // Before 1970 is long ago all the same.
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Some((UnixTime::since_unix_epoch(Duration::from_secs(seconds)), rest))
}
