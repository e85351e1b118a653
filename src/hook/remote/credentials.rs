//! What a hook is reached with is nobody's to read: a server may say it back where it refuses us.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use crate::hook::access::Admission;
use crate::hook::remote::target::Target;
use crate::mask::{Secrets, Veil, Words};

/// Hides the credentials that go along with a call.
pub(super) fn veil(admission: &Admission, target: &Target) -> Veil {
    let mut secrets = Secrets::default();
    let pass = admission.pass().ok();
    let ours = pass.as_ref().and_then(|pass| pass.authorization.as_ref());
    for header in [ours, target.authorization.as_ref()].into_iter().flatten() {
        add(header, &mut secrets);
    }
    Veil::new(&secrets, Words::Told)
}

/// `Bearer TOKEN`, or `Basic` with a user and a password in base64.
fn add(header: &HeaderValue, secrets: &mut Secrets) {
    let Some((_, credentials)) = header.to_str().ok().and_then(|text| text.split_once(' ')) else { return };
    secrets.add_text(credentials);
    let decoded = STANDARD.decode(credentials).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some((_, password)) = decoded.as_deref().and_then(|pair| pair.split_once(':')) {
        secrets.add_text(password);
    }
}
