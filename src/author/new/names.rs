//! What a new operator and its kind are called.

use crate::author::new::Scope;
use crate::object::name::plural;
use crate::object::validity::dns_subdomain;
use crate::problem::Problem;

/// What was asked for; what is left out follows from the rest.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The hook: the name of its folder.
    pub hook: String,
    pub group: Option<String>,
    pub kind: Option<String>,
    pub version: Option<String>,
    pub plural: Option<String>,
}

/// The names of a hook and of the kind that it is for, all of them usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub hook: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub(in crate::author::new) scope: Scope,
}

impl Wish {
    /// Fills in what was left out: the kind is made of the hook's name, the plural of the kind.
    pub(in crate::author::new) fn names(self) -> Result<Names, Problem> {
        let group = self.group.ok_or_else(|| {
            Problem::new("a new kind needs an API group")
                .hint("name a domain of yours: `--group example.com`")
        })?;
        let kind = self.kind.unwrap_or_else(|| pascal_case(&self.hook));
        let names = Names {
            plural: self.plural.unwrap_or_else(|| plural(&kind)),
            version: self.version.unwrap_or_else(|| "v1".into()),
            hook: self.hook,
            group,
            kind,
            scope: Scope::Namespaced,
        };
        names.check()?;
        Ok(names)
    }
}

impl Names {
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// A text with `<hook>`, `<kind>`, … replaced.
    pub(in crate::author::new) fn fill(&self, text: &str) -> String {
        let singular = self.kind.to_lowercase();
        let names = [
            ("<hook>", &self.hook),
            ("<group>", &self.group),
            ("<version>", &self.version),
            ("<kind>", &self.kind),
            ("<plural>", &self.plural),
            ("<singular>", &singular),
        ];
        names.iter().fold(text.to_string(), |text, (mark, name)| text.replace(mark, name))
    }

    pub(in crate::author::new) fn check(&self) -> Result<(), Problem> {
        check_hook(&self.hook)?;
        let refuse = |what: &str, name: &str, why: &str| {
            Problem::new(format!("the {what} `{name}` cannot be used: it {why}"))
        };
        let lower = self.group.to_lowercase();
        dns_subdomain(&self.group).map_err(|why| match dns_subdomain(&lower) {
            Ok(()) => refuse("group", &self.group, &why).hint(format!("`{lower}`")),
            Err(_) => refuse("group", &self.group, &why),
        })?;
        if !self.group.contains('.') {
            let why = "has no dot";
            return Err(refuse("group", &self.group, why)
                .hint(format!("a domain such as `{}.example.com`", self.group)));
        }
        if is_kept_for_kubernetes(&self.group) {
            let why = "is kept for Kubernetes' own kinds, and an API server refuses others";
            return Err(
                refuse("group", &self.group, why).hint("name a domain of yours: `--group example.com`")
            );
        }
        if !is_kind(&self.kind) {
            let why = "must begin with a capital letter and consist of letters and digits, 63 at most";
            return Err(refuse("kind", &self.kind, why).hint(format!("`{}`", pascal_case(&self.kind))));
        }
        for (what, name) in [("version", &self.version), ("plural", &self.plural)] {
            if !is_label(name) {
                let why =
                    "must consist of lower-case letters, digits and `-`, 63 at most, and begin with a letter";
                return Err(refuse(what, name, why));
            }
        }
        Ok(())
    }
}

/// A hook's name is a folder, a part of a URL, and the name of its definition.
pub(in crate::author::new) fn check_hook(hook: &str) -> Result<(), Problem> {
    if is_label(hook) {
        return Ok(());
    }
    let lower: String = hook
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
        .collect();
    // What stands for a letter of another alphabet is for its author to say.
    let usable = match hook.is_ascii() {
        true => lower.trim_matches(|c: char| c == '-' || c.is_ascii_digit()).to_string(),
        false => String::new(),
    };
    let problem = Problem::new(format!("`{hook}` cannot be the name of a hook"))
        .expected("lower-case letters, digits and `-`, 63 at most, beginning with a letter");
    Err(if is_label(&usable) {
        problem.hint(format!("`{usable}`, with `--kind` for the kind"))
    } else {
        problem
    })
}

/// <https://github.com/kubernetes/enhancements/pull/1111>: only with an annotation that names the approval.
fn is_kept_for_kubernetes(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|kept| group.strip_suffix(kept).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

fn is_kind(kind: &str) -> bool {
    kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.len() <= 63
        && kind.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_label(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= 63
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// `web-site` as `WebSite`.
fn pascal_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(hook: &str, group: &str) -> Wish {
        Wish { hook: hook.into(), group: Some(group.into()), kind: None, version: None, plural: None }
    }

    #[track_caller]
    fn refused(wish: Wish, page: &str) {
        assert_eq!(wish.names().unwrap_err().page(), page);
    }

    #[test]
    fn what_is_left_out_follows_from_the_rest() {
        let names = wish("web-site", "example.com").names().unwrap();
        assert_eq!((names.kind.as_str(), names.plural.as_str()), ("WebSite", "websites"));
        assert_eq!(names.api_version(), "example.com/v1");
    }

    #[test]
    fn names_that_a_cluster_would_refuse_are_refused_first() {
        refused(
            wish("MySQL", "example.com"),
            "`MySQL` cannot be the name of a hook\nexpected: lower-case letters, digits and `-`, 63 at most, beginning with a letter\nhint: `mysql`, with `--kind` for the kind",
        );
        refused(
            wish("a", "example"),
            "the group `example` cannot be used: it has no dot\nhint: a domain such as `example.example.com`",
        );
        refused(
            Wish { kind: Some("web-site".into()), ..wish("a", "example.com") },
            "the kind `web-site` cannot be used: it must begin with a capital letter and consist of letters and digits, 63 at most\nhint: `WebSite`",
        );
        refused(
            wish("a", "Example.com"),
            "the group `Example.com` cannot be used: it must consist of lower-case letters, digits, `-` and `.`\nhint: `example.com`",
        );
        for group in ["k8s.io", "apps.kubernetes.io"] {
            let page = format!(
                "the group `{group}` cannot be used: it is kept for Kubernetes' own kinds, and an API server refuses others\nhint: name a domain of yours: `--group example.com`"
            );
            refused(wish("a", group), &page);
        }
        assert!(wish("a", "not-k8s.io").names().is_ok());
        refused(
            Wish { group: None, ..wish("a", "") },
            "a new kind needs an API group\nhint: name a domain of yours: `--group example.com`",
        );
    }
}
