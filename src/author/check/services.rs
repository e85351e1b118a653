//! What the API server asks of Services, Ingresses and claims beyond their schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::author::check::finding::Rule;
use crate::author::check::look::{Look, below, items};

impl Look<'_> {
    pub(super) fn service(&mut self, spec: &Value) {
        let ports = &spec["ports"];
        let portless = spec["type"] == "ExternalName" || spec["clusterIP"] == "None";
        if !portless && ports.as_array().is_none_or(Vec::is_empty) {
            self.say(Rule::MissingField, &["spec".into()], "has no `ports`");
        }
        let several = ports.as_array().is_some_and(|ports| ports.len() > 1);
        let path = |steps: &[&str]| below(&["spec".to_string(), "ports".to_string()], steps);
        let mut names = BTreeSet::new();
        for (index, port) in items(ports) {
            self.port(&port["port"], &path(&[&index, "port"]));
            self.port_name(&port["targetPort"], &path(&[&index, "targetPort"]));
            let name = port["name"].as_str();
            if several && name.is_none() {
                let said = self.say(Rule::MissingField, &path(&[&index]), "has no `name`");
                said.hint = Some("a Service with several ports names each of them".into());
            }
            if let Some(name) = name {
                self.label(&port["name"], &path(&[&index, "name"]));
                if !names.insert(name) {
                    let said = format!("is `{name}`, as that of another port");
                    self.say(Rule::RepeatedKey, &path(&[&index, "name"]), &said);
                }
            }
        }
    }

    pub(super) fn ingress(&mut self, spec: &Value) {
        let spec_path = ["spec".to_string()];
        let rules = &spec["rules"];
        if spec["defaultBackend"].is_null() && rules.as_array().is_none_or(Vec::is_empty) {
            self.say(Rule::MissingField, &spec_path, "has neither `rules` nor a `defaultBackend`");
        }
        self.backend(&spec["defaultBackend"], &below(&spec_path, &["defaultBackend"]));
        for (rule, value) in items(rules) {
            for (index, path) in items(&value["http"]["paths"]) {
                let at = below(&spec_path, &["rules", &rule, "http", "paths", &index, "backend"]);
                self.backend(&path["backend"], &at);
            }
        }
    }

    fn backend(&mut self, backend: &Value, path: &[String]) {
        let port = &backend["service"]["port"];
        if backend["service"].is_object() && port["name"].is_null() && port["number"].is_null() {
            let path = below(path, &["service"]);
            self.say(Rule::MissingField, &path, "has neither `port.name` nor `port.number`");
        }
    }

    /// A claim or the template of one: how it is used, and its size.
    pub(super) fn claim(&mut self, spec: &Value, path: &[String]) {
        if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
            self.say(Rule::MissingField, path, "has no `accessModes`");
        }
        if spec["resources"]["requests"]["storage"].is_null() {
            self.say(Rule::MissingField, path, "has no `resources.requests.storage`");
        }
    }
}
