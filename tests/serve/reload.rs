//! A changed file is live within a second, and a broken one stops nobody.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::server::{Server, write};

/// The promise; a busy machine gets a little more.
const LIVE: Duration = Duration::from_secs(3);
const BROKEN: &str = "status: {phase: {{ parent. }}\n";

fn phase(server: &Server, hook: &str) -> String {
    let reply = server.call(&format!("/{hook}/sync"), &json!({"apiVersion": "v1", "kind": "A"}));
    let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    answer["status"]["phase"].as_str().map_or(format!("{reply:?}"), str::to_string)
}

#[track_caller]
fn becomes(server: &Server, hook: &str, expected: &str) {
    wait_until(LIVE, &format!("`{hook}` answers `{expected}`"), || {
        let seen = phase(server, hook);
        if seen == expected { Ok(()) } else { Err(seen) }
    });
}

fn status(phase: &str) -> String {
    format!("status: {{phase: {phase}}}\n")
}

// B34
#[test]
fn an_edited_file_is_live() {
    let server = Server::start(&[("a/sync.yaml", &status("one"))]);
    assert_eq!(phase(&server, "a"), "one");
    server.write("a/sync.yaml", &status("two"));
    becomes(&server, "a", "two");
    let renamed = server.hooks().join("a/.sync.yaml.new");
    write(&renamed, &status("three"));
    fs::rename(renamed, server.hooks().join("a/sync.yaml")).unwrap();
    becomes(&server, "a", "three");
}

#[test]
fn an_edited_file_is_live_where_the_folder_is_polled() {
    let server = Server::start_with(&[("a/sync.yaml", &status("one"))], &["--poll"]);
    server.write("a/sync.yaml", &status("two"));
    becomes(&server, "a", "two");
    let said = server.logged("hooks folder cannot be watched, so it is looked at twice a second");
    assert_eq!(said["why"], "asked to");
}

#[test]
fn an_included_file_is_live_in_all_that_include_it() {
    let include = "{% include '_lib/deep/status.yaml' %}";
    let files =
        [("a/sync.yaml", include), ("b/sync.yaml", include), ("_lib/deep/status.yaml", &status("one"))];
    let server = Server::start(&files);
    assert_eq!([phase(&server, "a"), phase(&server, "b")], ["one", "one"]);
    server.write("_lib/deep/status.yaml", &status("two"));
    becomes(&server, "a", "two");
    becomes(&server, "b", "two");
}

#[test]
fn a_new_hook_and_a_new_folder_are_live() {
    let server = Server::start(&[("a/sync.yaml", &status("one"))]);
    server.write("b/sync/status.yaml", &status("new"));
    becomes(&server, "b", "new");
    server.write("b/sync/status.yaml", &status("newer"));
    becomes(&server, "b", "newer");
}

// B34
#[test]
fn a_swapped_link_of_a_config_map_volume_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = folder.path().join("hooks");
    write(&hooks.join("..2026_1/a/sync.yaml"), &status("one"));
    symlink("..2026_1", hooks.join("..data")).unwrap();
    symlink("..data/a", hooks.join("a")).unwrap();
    let server = Server::start_in(folder, &[]);
    assert_eq!(phase(&server, "a"), "one");
    for (next, text) in [("..2026_2", "two"), ("..2026_3", "three")] {
        write(&hooks.join(next).join("a/sync.yaml"), &status(text));
        symlink(next, hooks.join("..data_tmp")).unwrap();
        fs::rename(hooks.join("..data_tmp"), hooks.join("..data")).unwrap();
        becomes(&server, "a", text);
    }
}

#[test]
fn a_swapped_link_to_the_whole_folder_is_live() {
    let folder = tempfile::tempdir().unwrap();
    for release in ["one", "two"] {
        write(&folder.path().join(release).join("a/sync.yaml"), &status(release));
    }
    symlink("one", folder.path().join("hooks")).unwrap();
    let (next, hooks) = (folder.path().join("next"), folder.path().join("hooks"));
    let server = Server::start_in(folder, &[]);
    assert_eq!(phase(&server, "a"), "one");
    symlink("two", &next).unwrap();
    fs::rename(next, hooks).unwrap();
    becomes(&server, "a", "two");
}

// B34
#[test]
fn the_last_good_revision_answers_while_the_new_one_is_broken() {
    let server = Server::start(&[("a/sync.yaml", &status("good")), ("b/sync.yaml", &status("one"))]);
    server.write("a/sync.yaml", BROKEN);
    let said = server.logged("hook revision does not compile");
    assert_eq!(said["hook"], "a");
    assert!(said["answering"].is_string());
    assert_eq!(phase(&server, "a"), "good");
    server.write("b/sync.yaml", &status("two"));
    becomes(&server, "b", "two");
    let ready = server.get("/readyz?verbose");
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("does not compile\n    hooks/a/sync.yaml:1:"), "{}", ready.body);
    server.write("a/sync.yaml", &status("mended"));
    becomes(&server, "a", "mended");
    let ready = server.get("/readyz?verbose").body;
    assert!(ready.starts_with("[+] a: revision "), "{ready}");
}

#[test]
fn a_broken_shared_file_stops_only_the_hooks_that_include_it() {
    let server = Server::start(&[
        ("_lib/status.yaml", &status("good")),
        ("a/sync.yaml", "{% include '_lib/status.yaml' %}"),
        ("b/sync.yaml", &status("one")),
    ]);
    server.write("_lib/status.yaml", "{% if %}");
    assert_eq!(server.logged("hook revision does not compile")["hook"], "a");
    server.write("b/sync.yaml", &status("two"));
    becomes(&server, "b", "two");
    assert_eq!(phase(&server, "a"), "good");
}

#[test]
fn a_folder_that_is_broken_at_the_start_is_served_once_it_is_mended() {
    let server = Server::start(&[("a/sync.yaml", BROKEN)]);
    let reply = server.call("/a/sync", &json!({"apiVersion": "v1", "kind": "A"}));
    assert_eq!(reply.status, 503, "{reply:?}");
    let problem: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((problem["file"].as_str(), problem["line"].as_u64()), (Some("hooks/a/sync.yaml"), Some(1)));
    let ready = server.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.body.starts_with("not ready: hooks/a/sync.yaml:1:"), "{}", ready.body);
    server.write("a/sync.yaml", &status("mended"));
    becomes(&server, "a", "mended");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_folder_that_goes_away_leaves_its_hooks_and_may_come_back() {
    let server = Server::start(&[("a/sync.yaml", &status("one"))]);
    let (hooks, away) = (server.hooks(), server.hooks().with_extension("away"));
    fs::rename(&hooks, &away).unwrap();
    server.logged("hooks folder unreadable, the last good revisions answer");
    assert_eq!(phase(&server, "a"), "one");
    write(&away.join("a/sync.yaml"), &status("two"));
    fs::rename(&away, &hooks).unwrap();
    becomes(&server, "a", "two");
    server.write("a/sync.yaml", &status("three"));
    becomes(&server, "a", "three");
}

#[test]
fn a_removed_hook_is_unknown() {
    let server = Server::start(&[("a/sync.yaml", &status("one")), ("b/sync.yaml", &status("one"))]);
    fs::remove_dir_all(server.hooks().join("b")).unwrap();
    server.logged("hook removed");
    assert_eq!(server.call("/b/sync", &json!({"apiVersion": "v1", "kind": "A"})).status, 404);
    assert_eq!(phase(&server, "a"), "one");
}
