//! Certificates that the controller makes itself, as the API server is shown them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::lab::{Lab, SOON};
use crate::support::pages::{ANY_PORTS, Pages, webhook_port};
use crate::support::rights::{narrow, refused};

const VALIDATE: &str =
    "errors: {% if object.spec.no is defined %}[{field: spec.no, message: never}]{% else %}[]{% endif %}\n";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A kind that is validated by whoever keeps the Secret `hooks`.
struct Validated {
    lab: Lab,
}

impl Validated {
    fn new(subject: &str) -> Validated {
        let lab = Lab::new(subject);
        fs::create_dir(lab.folder.path().join("hooks/thing")).unwrap();
        fs::write(lab.folder.path().join("hooks/thing/validate.yaml"), VALIDATE).unwrap();
        lab.write_definitions(&[]);
        Validated { lab }
    }

    fn start(&self, more: &[&str]) -> Controller {
        let secret = format!("{}/hooks", self.lab.namespace);
        let flags =
            ["--webhook-listen", "127.0.0.1:0", "--webhook-host", "localhost", "--webhook-secret", &secret];
        self.lab.start(&[&flags, more].concat())
    }

    fn secret(&self) -> String {
        self.lab.path("v1", "secrets", "hooks")
    }

    /// Something that the Secret keeps.
    fn kept(&self, key: &str) -> String {
        let secret =
            self.lab.wait(&self.secret(), "it keeps a certificate", |secret| secret["data"][key].is_string());
        String::from_utf8(STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap()).unwrap()
    }

    fn configuration(&self) -> String {
        format!("{CONFIGURATIONS}/{}", self.lab.namespace)
    }

    /// Has the API server ask a process about every Thing, whom it does not trust yet.
    fn validate_by(&self, controller: &Controller) {
        self.validate_by_all(&[controller]);
    }

    /// Has it ask all of these, whatever any of them says.
    fn validate_by_all(&self, controllers: &[&Controller]) {
        let label = format!("{}.hooks", self.lab.namespace);
        let webhook = |(number, controller): (usize, &&Controller)| {
            let url = format!("https://localhost:{}/thing/validate", webhook_port(controller));
            json!({
                "name": format!("validate-{number}.{}", self.lab.group), "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "clientConfig": {"url": url},
                "rules": [{
                    "apiGroups": [self.lab.group], "apiVersions": ["*"], "resources": ["things"],
                    "operations": ["CREATE", "UPDATE"],
                }],
            })
        };
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.lab.namespace, "labels": {"syncwright.io/inject-ca-from": label}},
            "webhooks": controllers.iter().enumerate().map(webhook).collect::<Vec<_>>(),
        });
        self.lab.plane.create(CONFIGURATIONS, &object);
        self.lab.plane.delete_at_end(self.configuration());
    }

    fn wait_injected(&self) {
        let bundle = STANDARD.encode(self.kept("ca.crt"));
        self.lab.wait(&self.configuration(), "the Secret's authorities are trusted", |object| {
            let webhooks = object["webhooks"].as_array().into_iter().flatten();
            webhooks.into_iter().all(|webhook| webhook["clientConfig"]["caBundle"] == bundle.as_str())
        });
    }

    /// The status and the message with which the API server answers to a new Thing, which it does not keep.
    fn try_to_create(&self, spec: &Value) -> (u16, String) {
        let path = format!("{}?dryRun=All", self.lab.thing(""));
        let reply =
            self.lab.plane.request("POST", &path, Some(&self.lab.thing_with("one", spec.clone()))).unwrap();
        (reply.status, reply.body)
    }

    fn wait_validated(&self) {
        wait_until(SOON, "a Thing is refused by its hook, and another taken", || {
            let (refused, taken) = (self.try_to_create(&json!({"no": 1})), self.try_to_create(&json!({})));
            let is_so = refused.0 == 422 && refused.1.contains("spec.no: never") && taken.0 == 201;
            if is_so { Ok(()) } else { Err(format!("{refused:?} {taken:?}")) }
        });
    }
}

/// Those who ask without a pause whether a Thing may be made, until they are told to stop.
struct Load<'scope> {
    stop: &'scope AtomicBool,
    askers: Vec<ScopedJoinHandle<'scope, usize>>,
}

impl<'scope> Load<'scope> {
    /// Each refusal is a failure: every Thing may be made.
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        validated: &'scope Validated,
        stop: &'scope AtomicBool,
    ) -> Load<'scope> {
        let ask = || {
            let mut asked = 0;
            while !stop.load(Ordering::Relaxed) {
                let said = validated.try_to_create(&json!({}));
                assert_eq!(said.0, 201, "after {asked}: {}", said.1);
                asked += 1;
            }
            asked
        };
        Load { stop, askers: (0..3).map(|_| scope.spawn(ask)).collect() }
    }

    /// How often was asked.
    fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.askers.into_iter().map(|asker| asker.join().expect("no request failed")).sum()
    }
}

const SHORT_LIVES: [&str; 4] = ["--webhook-cert-lifetime", "36s", "--webhook-ca-lifetime", "72s"];
const SHORT_LEASE: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2500ms",
    "--leader-elect-retry-period=500ms",
];

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn certificates(pem: &str) -> usize {
    pem.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn what_the_controller_made_is_trusted_by_the_api_server() {
    let validated = Validated::new("trusted");
    let controller = validated.start(&[]);
    validated.validate_by(&controller);
    validated.wait_injected();
    validated.wait_validated();
    let secret = validated.lab.get(&validated.secret());
    assert_eq!(secret["type"], "kubernetes.io/tls");
    assert_eq!(secret["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "syncwright"}));

    // As somebody may who writes the object anew.
    let mut webhooks = validated.lab.get(&validated.configuration())["webhooks"].clone();
    webhooks[0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    validated.lab.merge(&validated.configuration(), json!({ "webhooks": webhooks }));
    validated.wait_injected();
    validated.wait_validated();
    assert!(!controller.log().contains("PRIVATE KEY"), "{}", controller.log());
}

#[test]
fn printed_rights_are_enough_for_certificates() {
    let mut validated = Validated::new("narrow");
    let secret = format!("{}/hooks", validated.lab.namespace);
    narrow(&mut validated.lab, &["--webhook-secret", &secret]);
    let controller = validated.start(&[]);
    validated.validate_by(&controller);
    validated.wait_injected();
    validated.wait_validated();
    let broken = json!({"data": {"tls.key": STANDARD.encode("broken")}});
    validated.lab.merge(&validated.secret(), broken.clone());
    validated.lab.wait(&validated.secret(), "it is made anew", |secret| {
        secret["data"]["tls.key"] != broken["data"]["tls.key"]
    });
    validated.wait_injected();
    assert_eq!(refused(&validated.lab), [""; 0]);
}

#[test]
fn processes_share_one_authority_and_one_that_comes_later_makes_none() {
    let validated = Validated::new("shared");
    let both = [validated.start(&[]), validated.start(&[])];
    for controller in &both {
        wait_until(SOON, "it shows a certificate", || {
            let log = controller.log();
            if log.contains("certificate loaded") { Ok(()) } else { Err(log) }
        });
    }
    validated.validate_by(&both[0]);
    validated.wait_injected();
    validated.wait_validated();
    assert_eq!(certificates(&validated.kept("ca.crt")), 1);
    let made: usize = both
        .iter()
        .map(|controller| controller.log().matches("certificate and authority made").count())
        .sum();
    assert_eq!(made, 1);

    // Nobody is left, and what was told to the API server is lost.
    let version = validated.lab.get(&validated.secret())["metadata"]["resourceVersion"].clone();
    both.into_iter().for_each(Controller::kill);
    validated.lab.plane.delete(&validated.configuration());
    let later = validated.start(&[]);
    validated.validate_by(&later);
    validated.wait_injected();
    validated.wait_validated();
    assert_eq!(validated.lab.get(&validated.secret())["metadata"]["resourceVersion"], version);
}

#[test]
fn a_secret_of_somebody_else_is_left_alone_and_one_that_is_broken_is_mended() {
    let validated = Validated::new("foreign");
    let lab = &validated.lab;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hooks"}, "stringData": {"tls.crt": "theirs"},
    });
    lab.create("v1", "secrets", &theirs);
    let controller = validated.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    let what = "the probe says whose the Secret is";
    let said = wait_until(SOON, what, || {
        let said = pages.probe("/readyz?verbose");
        if said.text.contains("is not ours") { Ok(said) } else { Err(said.text) }
    });
    let expected = format!(
        "Secret `{}/hooks` is not ours, and is left alone: it has no label `app.kubernetes.io/managed-by: syncwright`; \
         hint: delete it, or name another with --webhook-secret",
        lab.namespace
    );
    assert!(said.status != 200 && said.text.contains(&expected), "{said:?}");
    assert_eq!(validated.kept("tls.crt"), "theirs");

    lab.plane.delete(&validated.secret());
    pages.becomes_ready();
    let said = pages.probe("/readyz?verbose").text;
    assert!(said.contains("webhooks") && said.contains("the certificate is good until"), "{said}");
    let expiry =
        pages.scrape().get("syncwright_webhook_certificate_expiry_timestamp_seconds").unwrap_or_default();
    let days = (expiry - now()) / 86_400.0;
    assert!((89.0..=90.0).contains(&days), "{days}");
    let expiry =
        pages.scrape().get("syncwright_webhook_authority_expiry_timestamp_seconds").unwrap_or_default();
    let days = (expiry - now()) / 86_400.0;
    assert!((1094.0..=1095.0).contains(&days), "{days}");
    let good = validated.kept("tls.crt");
    lab.merge(&validated.secret(), json!({"data": {"tls.crt": STANDARD.encode("broken")}}));
    lab.wait(&validated.secret(), "it is made anew", |secret| {
        let kept =
            STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap_or_default()).unwrap_or_default();
        kept != b"broken" && kept != good.as_bytes()
    });
    assert!(controller.log().contains("`tls.crt` holds no certificate"), "{}", controller.log());
}

#[test]
fn no_request_fails_while_certificates_and_authorities_are_renewed() {
    let validated = Validated::new("renewing");
    let controller = validated.start(&["--webhook-cert-lifetime", "36s", "--webhook-ca-lifetime", "72s"]);
    validated.validate_by(&controller);
    validated.wait_injected();
    validated.wait_validated();
    let (certificate, authority) = (validated.kept("tls.crt"), validated.kept("ca.crt"));
    // An authority of 72 s is followed by another after 48 s, which signs a little later.
    wait_until(4 * SOON, "another authority has signed", || {
        let said = validated.try_to_create(&json!({}));
        assert_eq!(said.0, 201, "{}\n{}", said.1, controller.log());
        let log = controller.log();
        let after = log.split_once("authority comes to its end").map(|(_, after)| after.to_string());
        let signed = after.is_some_and(|after| after.contains("certificate made"));
        if signed { Ok(()) } else { Err(log) }
    });
    validated.wait_injected();
    validated.wait_validated();
    assert_ne!(validated.kept("tls.crt"), certificate);
    assert!(validated.kept("ca.crt").ends_with(&authority) || !validated.kept("ca.crt").contains(&authority));
}

/// As when a release is upgraded that had no webhooks: the older process goes when the newer one is ready.
#[test]
fn one_that_stands_by_is_ready_without_a_certificate_and_makes_it_when_it_leads() {
    let validated = Validated::new("taken-up");
    let namespace = format!("--leader-elect-namespace={}", validated.lab.namespace);
    let elect = ["--leader-elect", &namespace, "--leader-elect-retry-period=500ms"];
    let older = validated.lab.start(&elect);
    let leads = || older.log().contains("Successfully acquired lease");
    validated.lab.wait_until("the older one leads", leads);
    let newer = validated.start(&[&elect[..], &ANY_PORTS].concat());
    let pages = Pages::of(&newer);
    pages.becomes_ready();
    let said = pages.probe("/readyz?verbose").text;
    let secret = format!("{}/hooks", validated.lab.namespace);
    assert!(said.contains(&format!("[!]webhooks: the leader is to make Secret `{secret}`")), "{said}");
    assert!(older.terminate().success());
    wait_until(SOON, "it has made it", || {
        let said = pages.probe("/readyz?verbose");
        if said.text.contains("[+]webhooks: the certificate is good until") { Ok(()) } else { Err(said.text) }
    });
}

/// Waits until this stands in the log of one of them.
#[track_caller]
fn wait_logged(controllers: &[&Controller], what: &str, words: &str) {
    wait_until(3 * SOON, what, || {
        let logs: Vec<String> = controllers.iter().map(|controller| controller.log()).collect();
        let last = |log: &String| log.lines().rev().take(5).collect::<Vec<_>>().join("\n");
        if logs.iter().any(|log| log.contains(words)) {
            Ok(())
        } else {
            Err(logs.iter().map(last).collect::<Vec<_>>().join("\n---\n"))
        }
    });
}

#[test]
fn no_request_of_a_load_on_three_replicas_fails_while_all_is_renewed() {
    let validated = Validated::new("three");
    let namespace = format!("--leader-elect-namespace={}", validated.lab.namespace);
    let flags = [&SHORT_LEASE[..], &SHORT_LIVES, &[&namespace]].concat();
    let replicas = [(); 3].map(|()| validated.start(&flags));
    let all = replicas.each_ref();
    validated.validate_by_all(&all);
    validated.wait_injected();
    validated.wait_validated();
    let authority = validated.kept("ca.crt");
    let stop = AtomicBool::new(false);
    let asked = scope(|scope| {
        let load = Load::start(scope, &validated, &stop);
        wait_logged(&all, "another authority is made", "authority comes to its end");
        wait_until(3 * SOON, "it has signed, and every replica shows that", || {
            let signed = |controller: &&Controller| {
                let log = controller.log();
                // The first of all, that of the first renewal, the bundle of both authorities, and what the new one signed.
                log.matches("certificate loaded").count() >= 4
            };
            let count = all.iter().filter(|controller| signed(controller)).count();
            if count == all.len() { Ok(()) } else { Err(format!("{count} of {}", all.len())) }
        });
        validated.wait_injected();
        load.stop()
    });
    println!("asked {asked} times, of three replicas each time");
    assert!(asked > 100, "{asked}");
    assert_ne!(validated.kept("ca.crt"), authority);
    validated.wait_validated();
}

#[test]
fn an_authority_of_which_nobody_was_told_signs_nothing() {
    let mut validated = Validated::new("untold");
    let full = validated.lab.plane.user(&validated.lab.namespace, "full", "cluster-admin");
    // It can do all but tell the API server: as if it were killed each time right after it has written the Secret.
    validated.lab.limit_rights(&json!([
        {"apiGroups": ["", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "metacontroller.k8s.io"],
         "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]));
    let namespace = format!("--leader-elect-namespace={}", validated.lab.namespace);
    let secret = format!("{}/hooks", validated.lab.namespace);
    let served =
        ["--webhook-listen", "127.0.0.1:0", "--webhook-host", "localhost", "--webhook-secret", &secret];
    let flags = [&SHORT_LEASE[..], &SHORT_LIVES, &[&namespace]].concat();
    let first = validated.start(&flags);
    let mut bundle = validated.kept("ca.crt");
    let standby = validated.lab.start_as(&full, &[&served[..], &flags].concat());
    wait_logged(&[&standby], "the other stands by", "standing by");
    validated.validate_by(&standby);
    let tell = |bundle: &str| {
        let mut webhooks = validated.lab.get(&validated.configuration())["webhooks"].clone();
        webhooks[0]["clientConfig"]["caBundle"] = STANDARD.encode(bundle).into();
        validated.lab.merge(&validated.configuration(), json!({ "webhooks": webhooks }));
    };
    tell(&bundle);
    validated.wait_validated();
    let stop = AtomicBool::new(false);
    scope(|scope| {
        let load = Load::start(scope, &validated, &stop);
        wait_logged(&[&first], "another authority is made", "authority comes to its end");
        bundle = validated.kept("ca.crt");
        assert_eq!(certificates(&bundle), 2, "the new one and the old one");
        // The time comes at which it would sign, had it been told of.
        let said = "by a new authority of which the API server was not told yet";
        wait_logged(&[&first], "it does not sign", said);
        assert!(!first.log().contains("caBundle injected"), "{}", first.log());
        first.kill();
        wait_logged(&[&standby], "the other tells of it", "caBundle injected");
        validated.wait_injected();
        assert!(!standby.log().contains("certificate made"), "told first, signed later: {}", standby.log());
        wait_logged(&[&standby], "then it signs", "certificate made");
        wait_logged(&[&standby], "and what it has signed is shown", "certificate loaded");
        load.stop()
    });
    validated.wait_validated();
}
