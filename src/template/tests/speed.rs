//! What a render costs. The bounds are loose: a test build of this crate is not optimised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::template::tests::cpu_time;
use crate::template::{Budget, Context, Library};

const OPERATOR: &str = r#"{% set labels = {"app": "mysql", "instance": parent.metadata.name} %}
apiVersion: v1
kind: Service
metadata:
  name: {{ parent.metadata.name }}
  labels: {{ labels }}
spec:
  clusterIP: None
  selector: {{ labels }}
  ports:
    - {name: mysql, port: 3306}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ parent.metadata.name }}-config
  labels: {{ labels }}
data:
  {% for key, value in parent.spec.config | items %}
  {{ key }}: "{{ value }}"
  {% endfor %}
  my.cnf: |
    [mysqld]
    port={{ parent.spec.port | default(3306) }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ parent.metadata.name }}
  labels: {{ labels }}
spec:
  serviceName: {{ parent.metadata.name }}
  replicas: {{ parent.spec.replicas }}
  selector:
    matchLabels: {{ labels }}
  template:
    metadata:
      labels: {{ labels }}
    spec:
      containers:
        - name: mysql
          image: mysql:{{ parent.spec.version }}
          ports:
            - name: mysql
              containerPort: 3306
          {% if parent.spec.resources is defined %}
          resources: {{ parent.spec.resources }}
          {% endif %}
          env:
            - name: MYSQL_ROOT_PASSWORD
              valueFrom:
                secretKeyRef: {name: "{{ parent.metadata.name }}-root", key: password}
          volumeMounts:
            - name: data
              mountPath: /var/lib/mysql
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests:
            storage: {{ parent.spec.storageSize | default("10Gi") }}
---
{% set ready = children.find("StatefulSet", parent.metadata.name).status.readyReplicas | default(0) %}
status:
  phase: {{ "Running" if ready == parent.spec.replicas else "Pending" }}
  readyReplicas: {{ ready }}
  message: {{ "All replicas are ready" if ready == parent.spec.replicas else "Waiting for replicas: " ~ ready ~ "/" ~ parent.spec.replicas }}
"#;

fn library() -> Library {
    Library::compile("hooks", BTreeMap::from([("sync.yaml".to_string(), OPERATOR.to_string())]))
        .expect("it compiles")
}

fn parent() -> Json {
    json!({
        "apiVersion": "database.example.com/v1", "kind": "MySQL",
        "metadata": {"name": "db", "namespace": "shop", "generation": 2, "uid": "7"},
        "spec": {
            "replicas": 3, "version": "8.0", "storageSize": "20Gi",
            "config": {"max_connections": "100", "innodb_buffer_pool_size": "1G"},
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
        }
    })
}

fn context() -> Context {
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set("parent", parent());
    let observed = json!({"metadata": {"name": "db"}, "status": {"readyReplicas": 3}});
    context.set_family(
        "children",
        BTreeMap::from([("StatefulSet.apps/v1".to_string(), BTreeMap::from([("db".to_string(), observed)]))]),
    );
    context
}

fn render(library: &Library) -> String {
    let files = ["sync.yaml".to_string()];
    let documents = library.render(&files, context(), &Budget::default()).expect("it renders");
    documents.iter().map(|document| document.value.to_string() + "\n").collect()
}

#[test]
fn an_operator_renders_in_well_under_a_millisecond() {
    let library = library();
    render(&library);
    let begin = cpu_time();
    let rounds = 200;
    for _ in 0..rounds {
        render(&library);
    }
    let each = (cpu_time() - begin) / rounds;
    eprintln!("one render: {each:?}");
    assert!(each < Duration::from_millis(5), "one render took {each:?}");
}

#[test]
fn renders_on_many_threads_give_the_same_bytes() {
    let library = Arc::new(library());
    let expected = render(&library);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let library = library.clone();
            std::thread::spawn(move || (0..50).map(|_| render(&library)).collect::<Vec<_>>())
        })
        .collect();
    for thread in threads {
        assert!(thread.join().expect("a render does not panic").iter().all(|rendered| *rendered == expected));
    }
}
