//! Who is answered, where not everybody is.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Reply, Server, reply};

const HOOK: (&str, &str) = ("a/sync.yaml", "status: {name: {{ parent.metadata.name }}}\n");

struct Guarded {
    server: Server,
    file: tempfile::NamedTempFile,
}

impl Guarded {
    fn new(tokens: &str) -> Guarded {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), tokens).unwrap();
        let path = file.path().display().to_string();
        Guarded { server: Server::start_with(&[HOOK], &["--token-file", &path]), file }
    }

    fn call(&self, authorization: Option<&str>) -> Reply {
        let parent = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}});
        let post =
            self.server.post("/a/sync").header("Content-Type", "application/json").body(parent.to_string());
        reply(authorization.into_iter().fold(post, |post, value| post.header("Authorization", value)).send())
    }

    #[track_caller]
    fn lets_in(&self, token: &str) {
        let reply = self.call(Some(&format!("Bearer {token}")));
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    #[track_caller]
    fn turns_away(&self, authorization: Option<&str>) {
        let reply = self.call(authorization);
        assert_eq!(reply.status, 401, "{authorization:?}: {reply:?}");
        let problem: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(problem["message"], "this service answers only those who have its token");
    }
}

#[test]
fn only_those_who_have_a_token_are_answered() {
    let guarded = Guarded::new("first\n\n  second  \n");
    guarded.lets_in("first");
    guarded.lets_in("second");
    let wrong = [
        "Bearer firs",
        "Bearer first2",
        "Bearer ",
        "Bearer",
        "first",
        "Basic first",
        "Bearer first second",
        "",
    ];
    wrong.into_iter().for_each(|wrong| guarded.turns_away(Some(wrong)));
    guarded.turns_away(None);
    assert_eq!(guarded.call(Some("bearer first")).status, 200, "the scheme's letters are no matter");

    let response = guarded.server.client.get(format!("http://{}/", guarded.server.address)).send().unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["WWW-Authenticate"].to_str().unwrap()),
        (401, "Bearer")
    );
    assert_eq!(guarded.server.get("/metrics").status, 401);
    assert_eq!(guarded.server.get("/nowhere").status, 401);
    for probe in ["/healthz", "/readyz?verbose"] {
        assert_eq!(guarded.server.get(probe).status, 200, "{probe}");
    }
}

#[test]
fn tokens_change_with_their_file_and_stay_where_it_cannot_be_used() {
    let guarded = Guarded::new("old\n");
    fs::write(guarded.file.path(), "old\nnew-one\n").unwrap();
    guarded.lets_in("new-one");
    guarded.lets_in("old");
    fs::write(guarded.file.path(), "new-one\n").unwrap();
    guarded.lets_in("new-one");
    guarded.turns_away(Some("Bearer old"));
    for unfit in ["", "\n\n", "two words\n"] {
        fs::write(guarded.file.path(), unfit).unwrap();
        guarded.lets_in("new-one");
    }
    let told = guarded.server.logged("who may call stays as it was");
    assert!(told["error"].as_str().unwrap().contains("cannot be used"), "{told}");
    assert!(
        guarded
            .server
            .lines("listening")
            .iter()
            .chain([&told])
            .all(|line| !line.to_string().contains("new-one"))
    );
}
