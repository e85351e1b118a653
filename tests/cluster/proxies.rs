//! Hooks that are reached through the proxies that the environment names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;
use crate::support::tls::Identity;

const WEBHOOK: &str = "/spec/hooks/sync/webhook";

/// A proxy that leads everybody to one port here, whatever the name.
struct Proxy {
    port: u16,
    /// The first line of what it was asked, and who asked.
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Proxy {
    fn leading_to(port: &str) -> Proxy {
        let server = format!("127.0.0.1:{port}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let asked = Arc::<Mutex<Vec<(String, String)>>>::default();
        let seen = asked.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, seen) = (server.clone(), seen.clone());
                thread::spawn(move || lead(client, &server, &seen));
            }
        });
        Proxy { port, asked }
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

/// One connection: a tunnel, or requests whose URLs are cut down to their paths.
fn lead(client: TcpStream, server: &str, seen: &Mutex<Vec<(String, String)>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut upstream = TcpStream::connect(server).ok()?;
    let (mut back, mut answers) = (upstream.try_clone().ok()?, client.try_clone().ok()?);
    let mut leads_back = Some(move || {
        let _ = std::io::copy(&mut back, &mut answers);
        let _ = answers.shutdown(Shutdown::Both);
    });
    loop {
        let head = Head::read(&mut reader)?;
        seen.lock().unwrap().push((head.first.clone(), head.who));
        let (method, rest) = head.first.split_once(' ')?;
        if method == "CONNECT" {
            (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
            thread::spawn(leads_back.take()?);
            std::io::copy(&mut reader, &mut upstream).ok()?;
            return upstream.shutdown(Shutdown::Write).ok();
        }
        let path = rest.splitn(4, '/').nth(3)?;
        upstream.write_all(format!("{method} /{path}\r\n{}\r\n", head.others).as_bytes()).ok()?;
        std::io::copy(&mut (&mut reader).take(head.length), &mut upstream).ok()?;
        leads_back.take().map(thread::spawn);
    }
}

struct Head {
    first: String,
    who: String,
    length: u64,
    /// The lines that the server is to see.
    others: String,
}

impl Head {
    fn read(reader: &mut impl BufRead) -> Option<Head> {
        let mut head = Head { first: String::new(), who: String::new(), length: 0, others: String::new() };
        reader.read_line(&mut head.first).ok().filter(|read| *read > 0)?;
        head.first = head.first.trim().into();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.split_once(": ") else { return Some(head) };
            match name.to_lowercase().as_str() {
                "proxy-authorization" => {
                    head.who = value.trim().into();
                    continue;
                }
                "content-length" => head.length = value.trim().parse().ok()?,
                _ => {}
            }
            head.others.push_str(&line);
        }
    }
}

#[test]
fn hook_in_the_clear_is_asked_through_the_proxy_and_the_api_server_is_not() {
    let lab = Lab::new("proxied");
    let hook = Hook::from_spec();
    let proxy = Proxy::leading_to(hook.port());
    let url = json!("http://hook.example/some/sync");
    lab.write_definitions(&[&lab
        .definition()
        .config_maps()
        .sync(&hook)
        .with(&format!("{WEBHOOK}/url"), url)]);
    let named = format!("http://me:pass%20word@127.0.0.1:{}", proxy.port);
    let variables = [("HTTP_PROXY", named.as_str()), ("HTTPS_PROXY", &named), ("NO_PROXY", "other.example")];
    let _controller = lab.start_in(&lab.user, &[], &variables);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.get(&lab.config_map("a"));
    lab.wait_quiet(&hook, SILENCE);
    let asked = proxy.asked();
    assert!(!asked.is_empty());
    // `me:pass word`
    let expected =
        ("POST http://hook.example/some/sync HTTP/1.1".to_owned(), "Basic bWU6cGFzcyB3b3Jk".to_owned());
    assert!(asked.iter().all(|asked| *asked == expected), "{asked:?}");
    assert_eq!(asked.len(), hook.count());
    assert!(hook.calls().iter().all(|call| call.header("proxy-authorization").is_empty()));
}

#[test]
fn hook_over_tls_is_reached_through_a_tunnel() {
    let lab = Lab::new("tunnel");
    let hook = Hook::from_spec();
    let identity = Identity::of_the_hook("hook.example");
    hook.secure(identity.server(None));
    let proxy = Proxy::leading_to(hook.port());
    let definition = lab.definition().config_maps().sync(&hook);
    let definition = definition.with(&format!("{WEBHOOK}/url"), json!("https://hook.example:8443/sync"));
    let definition = definition.with(&format!("{WEBHOOK}/caBundle"), json!({"inline": identity.certificate}));
    lab.write_definitions(&[&definition]);
    let named = format!("127.0.0.1:{}", proxy.port);
    let _controller = lab.start_in(&lab.user, &[], &[("https_proxy", &named)]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let asked = proxy.asked();
    assert_eq!(asked[0], ("CONNECT hook.example:8443 HTTP/1.1".to_owned(), String::new()));
}

#[test]
fn hosts_that_need_no_proxy_are_reached_directly_and_another_sort_of_proxy_is_refused() {
    let lab = Lab::new("noproxy");
    let hook = Hook::from_spec();
    let proxy = Proxy::leading_to(hook.port());
    let named = format!("http://127.0.0.1:{}", proxy.port);
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook)]);
    let controller = lab.start_in(&lab.user, &[], &[("HTTP_PROXY", &named)]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    controller.kill();

    let url = json!("http://hook.example/sync");
    lab.write_definitions(&[&lab
        .definition()
        .config_maps()
        .sync(&hook)
        .with(&format!("{WEBHOOK}/url"), url)]);
    let controller = lab.start_in(&lab.user, &[], &[("HTTP_PROXY", &named), ("NO_PROXY", "a, .example")]);
    lab.add_thing("u", json!({}));
    let message = lab.wait_refused(&lab.thing("u"), "HookUnavailable");
    assert!(message.starts_with("sync: no connection to http://hook.example"), "{message}");
    assert!(!message.contains("proxy"), "{message}");
    assert_eq!(proxy.asked(), []);
    controller.kill();

    let _controller = lab.start_in(&lab.user, &[], &[("HTTP_PROXY", "socks5://127.0.0.1:1080")]);
    assert_eq!(
        lab.wait_refused(&lab.thing("u"), "HookRefused"),
        "sync: the proxy for http://hook.example: `socks5://127.0.0.1:1080`: neither `http://` nor `https://`; hint: `HTTP_PROXY` and `HTTPS_PROXY` name proxies by `http://` or `https://`, `NO_PROXY` hosts without"
    );
}
