//! Making certificates, and judging kept ones. No clock: the time is given, in seconds since 1970.
//!
//! An authority signs the server's certificate. A new authority is made long before the old one ends, and stands in the
//! bundle beside it for a while before it signs anything: whoever is shown the new certificate has heard of its
//! authority by then, and whoever still sees the old one has not forgotten that one's.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

use super::read::{Read, Seconds, is_signed_by};

/// How much earlier than it is made a certificate begins, for clocks that are late.
const LATE_CLOCKS: Seconds = 3600;
/// The least and the most time that an authority is known before it signs.
const KNOWN_BEFORE: (Seconds, Seconds) = (5, 24 * 3600);

/// What is asked of the certificates.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The names by which the API server reaches this service, the most usual one first. Not empty.
    pub hosts: Vec<String>,
    /// How long the server's certificate is good.
    pub server: Duration,
    /// How long its authority is good.
    pub authority: Duration,
}

/// All that is kept, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub certificate: String,
    pub key: String,
    /// The authorities that are to be trusted, the one that signs first.
    pub bundle: String,
    /// The key of the first of them.
    pub authority_key: String,
}

/// What is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// An authority beside the one that there is.
    Authority,
    /// The server's certificate.
    Server,
}

/// How kept certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is to be made before this time.
    Good {
        until: Seconds,
    },
    Due {
        part: Part,
        why: String,
    },
}

impl Kept {
    /// A new authority and a certificate that it has signed. Authorities that were trusted until now still are.
    pub(super) fn made(terms: &Terms, trusted: &str, now: Seconds) -> Result<Kept, rcgen::Error> {
        let key = KeyPair::generate()?;
        let parameters = of_an_authority(terms, now);
        let certificate = parameters.self_signed(&key)?.pem();
        let bundle = certificate + &still_good(trusted, now);
        let (certificate, server_key) = signed(terms, &terms.hosts, &bundle, &key, now)?;
        Ok(Kept { certificate, key: server_key, bundle, authority_key: key.serialize_pem() })
    }

    /// The same with this part made anew.
    pub(super) fn renewed(&self, part: Part, terms: &Terms, now: Seconds) -> Result<Kept, rcgen::Error> {
        match part {
            Part::All => Kept::made(terms, &self.bundle, now),
            Part::Authority => {
                let key = KeyPair::generate()?;
                let certificate = of_an_authority(terms, now).self_signed(&key)?.pem();
                let bundle = certificate + &still_good(&self.bundle, now);
                Ok(Kept { bundle, authority_key: key.serialize_pem(), ..self.clone() })
            }
            Part::Server => {
                let key = KeyPair::from_pem(&self.authority_key)?;
                let hosts = all_hosts(
                    terms,
                    &Read::first(&self.certificate).map(|read| read.hosts).unwrap_or_default(),
                );
                let (certificate, server_key) = signed(terms, &hosts, &self.bundle, &key, now)?;
                Ok(Kept { certificate, key: server_key, ..self.clone() })
            }
        }
    }

    /// Judges what is kept.
    pub(super) fn state(&self, terms: &Terms, now: Seconds) -> State {
        self.judge(terms, now).unwrap_or_else(|(part, why)| State::Due { part, why })
    }

    /// Whether the server's certificate is good as it is, and the next one will be signed by another authority.
    pub(super) fn changes_hands(&self, now: Seconds) -> bool {
        let Some(server) = Read::first(&self.certificate) else { return false };
        let signers =
            Read::all(&self.bundle).into_iter().map(|authority| is_signed_by(&server, &authority, now));
        let signers: Vec<bool> = signers.collect();
        signers.first() == Some(&false) && signers.contains(&true)
    }

    fn judge(&self, terms: &Terms, now: Seconds) -> Result<State, (Part, String)> {
        let all = |why: &str| (Part::All, why.to_string());
        let server = Read::first(&self.certificate).ok_or_else(|| all("`tls.crt` holds no certificate"))?;
        if !fits(&server.der, &self.key) {
            return Err(all("`tls.key` is not the key of `tls.crt`"));
        }
        let authorities = Read::all(&self.bundle);
        let signing = authorities.first().ok_or_else(|| all("`ca.crt` holds no certificate"))?;
        let key = KeyPair::from_pem(&self.authority_key).ok();
        if key.is_none_or(|key| key.subject_public_key_info() != signing.public_key) {
            return Err((
                Part::Authority,
                "`ca.key` is not the key of the first certificate in `ca.crt`".into(),
            ));
        }
        let (due_authority, due_server) = (due(signing), due(&server));
        if now >= due_authority {
            return Err((Part::Authority, "the authority comes to its end".into()));
        }
        let due_now = |why: &str| Err((Part::Server, why.to_string()));
        if let Some(host) = terms.hosts.iter().find(|host| !server.hosts.contains(host)) {
            return due_now(&format!("`tls.crt` is not for `{host}`"));
        }
        if now >= server.until {
            return due_now("`tls.crt` has come to its end");
        }
        if !authorities.iter().any(|authority| now < authority.until && is_signed_by(&server, authority, now))
        {
            return due_now("`tls.crt` is signed by no authority in `ca.crt`");
        }
        // The newest authority signs when everybody has had the time to hear of it.
        let known = made(signing) + known_before(terms);
        let due_server = if is_signed_by(&server, signing, now) { due_server } else { known };
        let at = due_server.max(known).min(server.until);
        if now >= at {
            return due_now("`tls.crt` comes to its end, or its authority does");
        }
        Ok(State::Good { until: at.min(due_authority) })
    }
}

fn made(read: &Read) -> Seconds {
    read.from + LATE_CLOCKS
}

/// When a third of its life is left.
fn due(read: &Read) -> Seconds {
    made(read) + (read.until - made(read)) * 2 / 3
}

fn known_before(terms: &Terms) -> Seconds {
    (seconds(terms.authority) / 20).clamp(KNOWN_BEFORE.0, KNOWN_BEFORE.1)
}

fn seconds(time: Duration) -> Seconds {
    Seconds::try_from(time.as_secs()).unwrap_or(Seconds::MAX)
}

/// Those asked for and those that were there: two processes that are told different names do not take each other's away.
fn all_hosts(terms: &Terms, before: &[String]) -> Vec<String> {
    let further = before.iter().filter(|host| !terms.hosts.contains(host));
    terms.hosts.iter().chain(further).cloned().collect()
}

/// The certificates of a bundle that have not ended.
fn still_good(bundle: &str, now: Seconds) -> String {
    Read::all(bundle).into_iter().filter(|read| now < read.until).map(|read| read.pem()).collect()
}

fn of_an_authority(terms: &Terms, now: Seconds) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = named(&format!("syncwright webhook authority of {now}"));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (parameters.not_before, parameters.not_after) = life(now, now.saturating_add(seconds(terms.authority)));
    parameters
}

/// A server's certificate and its key, signed by the first authority of the bundle.
fn signed(
    terms: &Terms,
    hosts: &[String],
    bundle: &str,
    authority_key: &KeyPair,
    now: Seconds,
) -> Result<(String, String), rcgen::Error> {
    let authority = Read::first(bundle).ok_or(rcgen::Error::CouldNotParseCertificate)?;
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(hosts)?;
    parameters.distinguished_name = named("syncwright webhooks");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    let until = now.saturating_add(seconds(terms.server)).min(authority.until);
    (parameters.not_before, parameters.not_after) = life(now, until);
    let issuer = Issuer::from_ca_cert_der(&authority.der, authority_key)?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

fn life(now: Seconds, until: Seconds) -> (OffsetDateTime, OffsetDateTime) {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    (at(now - LATE_CLOCKS), at(until))
}

/// Whether a private key is that of a certificate.
fn fits(certificate: &CertificateDer<'static>, key: &str) -> bool {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
    key.is_ok_and(|key| {
        CertifiedKey::from_der(vec![certificate.clone()], key, &ring::default_provider()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Seconds = 1_800_000_000;
    const DAY: Seconds = 24 * 3600;

    fn terms() -> Terms {
        let day = Duration::from_secs(DAY as u64);
        Terms {
            hosts: vec!["hooks.ops.svc".into(), "127.0.0.1".into()],
            server: 90 * day,
            authority: 900 * day,
        }
    }

    fn new() -> Kept {
        Kept::made(&terms(), "", NOW).expect("it is made")
    }

    fn due_of(kept: &Kept, now: Seconds) -> Option<Part> {
        match kept.state(&terms(), now) {
            State::Good { .. } => None,
            State::Due { part, .. } => Some(part),
        }
    }

    #[test]
    fn a_server_is_renewed_when_a_third_of_its_life_is_left() {
        let kept = new();
        assert_eq!(kept.state(&terms(), NOW), State::Good { until: NOW + 60 * DAY });
        assert_eq!(due_of(&kept, NOW + 60 * DAY - 1), None);
        assert_eq!(due_of(&kept, NOW + 60 * DAY), Some(Part::Server));
        let renewed = kept.renewed(Part::Server, &terms(), NOW + 60 * DAY).expect("it is made");
        assert_eq!(due_of(&renewed, NOW + 60 * DAY), None);
        assert_eq!(renewed.bundle, kept.bundle, "nobody has to hear of anything");
    }

    /// Any moment of any certificate's life: the server's is good, and signed by what was told of a day before.
    #[test]
    fn no_renewal_in_ten_years_is_seen_by_whoever_hears_of_it_a_day_late() {
        let (mut kept, mut now) = (new(), NOW);
        let mut heard = kept.bundle.clone();
        let (mut told, mut parts) = (now, Vec::new());
        while now < NOW + 3650 * DAY {
            while let State::Due { part, .. } = kept.state(&terms(), now) {
                kept = kept.renewed(part, &terms(), now).expect("it is made");
                parts.push(part);
                if part == Part::Authority {
                    told = now;
                }
                assert!(parts.len() < 200, "it comes to rest");
            }
            if now >= told + DAY {
                heard.clone_from(&kept.bundle);
            }
            let server = Read::first(&kept.certificate).expect("a certificate");
            let trusted = Read::all(&heard);
            assert!(
                trusted.iter().any(|authority| is_signed_by(&server, authority, now)),
                "after {} days",
                (now - NOW) / DAY
            );
            now += 25 * 3600;
        }
        assert_eq!(parts.iter().filter(|part| **part == Part::Authority).count(), 6);
        assert!(!parts.contains(&Part::All), "{parts:?}");
        assert!(Read::all(&kept.bundle).len() <= 3, "what has ended is forgotten");
    }

    #[test]
    fn an_authority_that_has_not_signed_yet_changes_hands() {
        let kept = new();
        let both = kept.renewed(Part::Authority, &terms(), NOW + 600 * DAY).expect("it is made");
        assert!(!kept.changes_hands(NOW) && both.changes_hands(NOW + DAY));
        let signed = both.renewed(Part::Server, &terms(), NOW + 601 * DAY).expect("it is made");
        assert!(!signed.changes_hands(NOW + 601 * DAY), "it has signed");
        assert!(!both.changes_hands(NOW + 100 * DAY), "the one that there was has ended");
    }

    #[test]
    fn what_somebody_has_broken_is_made_anew() {
        let (kept, other) = (new(), new());
        let none = String::new;
        let broken = [
            (Kept { certificate: none(), ..kept.clone() }, Part::All),
            (
                Kept {
                    certificate: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
                    ..kept.clone()
                },
                Part::All,
            ),
            (Kept { key: other.key.clone(), ..kept.clone() }, Part::All),
            (Kept { key: "no key".into(), ..kept.clone() }, Part::All),
            (Kept { bundle: none(), ..kept.clone() }, Part::All),
            (Kept { authority_key: other.authority_key.clone(), ..kept.clone() }, Part::Authority),
            (Kept { authority_key: none(), ..kept.clone() }, Part::Authority),
            (
                Kept {
                    bundle: other.bundle.clone(),
                    authority_key: other.authority_key.clone(),
                    ..kept.clone()
                },
                Part::Server,
            ),
        ];
        for (index, (broken, part)) in broken.into_iter().enumerate() {
            assert_eq!(due_of(&broken, NOW), Some(part), "{index}: {:?}", broken.state(&terms(), NOW));
            let mut mended = broken;
            for _ in 0..3 {
                if let State::Due { part, .. } = mended.state(&terms(), NOW) {
                    mended = mended.renewed(part, &terms(), NOW).expect("it is made");
                }
            }
            assert_eq!(due_of(&mended, NOW), None, "{index}");
        }
        let ended = NOW + 2000 * DAY;
        assert_eq!(due_of(&kept, ended), Some(Part::Authority));
    }

    #[test]
    fn another_name_is_added_to_those_that_there_are() {
        let elsewhere = Terms { hosts: vec!["other.ops.svc".into()], ..terms() };
        let kept = new();
        assert!(matches!(kept.state(&elsewhere, NOW), State::Due { part: Part::Server, .. }));
        let both = kept.renewed(Part::Server, &elsewhere, NOW).expect("it is made");
        assert!(matches!(both.state(&elsewhere, NOW), State::Good { .. }));
        assert_eq!(due_of(&both, NOW), None);
    }
}
