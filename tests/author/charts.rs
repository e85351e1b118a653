//! Operators made of what `helm template` prints: whatever it holds, they pass `check`, `test` and `test --properties`.

use crate::{folder, says, syncwright};

/// Comments, empty documents, a List, a hook, two namespaces, kinds without one, text that looks like a template.
const DATABASE: &str = r#"---
# Source: db/templates/all.yaml
# A comment alone

---
# Source: db/templates/all.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: shop-db
  namespace: data
---
# Source: db/templates/all.yaml
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: shop-db-config, namespace: data}
  data: {max_connections: "100", script.sh: "echo {{ hello }} {%\n"}
- apiVersion: v1
  kind: Secret
  metadata: {name: shop-db-password, namespace: data}
  data: {password: c2VjcmV0}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shop-db
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: shop-db-watch
  namespace: monitoring
rules:
- {apiGroups: [""], resources: [services], verbs: [get]}
---

---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: shop-db
  namespace: data
  labels: {helm.sh/chart: db-1.2.3, app.kubernetes.io/managed-by: Helm}
spec:
  replicas: 2
  serviceName: shop-db
  selector: {matchLabels: {app: db, release: shop}}
  template:
    metadata: {labels: {app: db, release: shop}}
    spec:
      serviceAccountName: shop-db
      containers:
      - name: db
        image: postgres:16
        ports: [{containerPort: 5432, name: pg}]
        resources:
          limits: {cpu: 0.5, memory: 1Gi}
          requests: {cpu: 0.5}
        volumeMounts: [{name: data, mountPath: /var/lib/postgresql/data}]
        env:
        - name: POSTGRES_PASSWORD
          valueFrom: {secretKeyRef: {name: shop-db-password, key: password}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: shop-db}
spec: {clusterIP: None, selector: {app: db, release: shop}, ports: [{port: 5432, targetPort: pg}]}
---
# Source: db/templates/migrate.yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: shop-db-migrate
  namespace: data
  annotations: {"helm.sh/hook": pre-upgrade}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: "postgres:16", command: [migrate]}]
---
"#;

/// What runs beside a workload and around it.
const WORKERS: &str = r#"---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: mail-worker}
spec: {minAvailable: 1, selector: {matchLabels: {app: worker}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: mail-worker}
spec: {podSelector: {matchLabels: {app: worker}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: mail-agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1", resources: {limits: {cpu: 100m}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mail-worker}
spec:
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: "worker:1"}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: mail-worker}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: mail-worker}
  minReplicas: 1
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: mail-digest}
spec:
  schedule: "0 6 * * *"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: digest, image: "worker:1"}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: mail-index}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: index, image: "index:1"}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: mail-web}
spec:
  tls: [{hosts: [mail.example.com], secretName: mail-tls}]
  rules:
  - host: mail.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: mail-web, port: {number: 80}}}}]}
"#;

#[track_caller]
fn passes_all(chart: &str, hook: &str, notes: &[&str]) {
    let folder = folder(&[("all.yaml", chart)]);
    let made = ["new", hook, "--group", "example.com", "--from-manifests", "all.yaml"];
    let said = syncwright(folder.path(), &made);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let told: Vec<&str> = said.out.lines().filter(|line| line.starts_with("note:")).collect();
    assert_eq!(told, notes);
    let said = syncwright(folder.path(), &["check"]);
    assert!(said.out.starts_with("nothing found"), "{}", said.out);
    says(&syncwright(folder.path(), &["test"]), 0, "2 passed\n", "");
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
}

#[test]
fn chart_of_a_database() {
    passes_all(
        DATABASE,
        "db",
        &[
            "note: ClusterRole `shop-db` is left out: it belongs to no namespace, so a parent in one cannot own it",
            "note: Role `shop-db-watch` is left out: it is in the namespace `monitoring`, and a parent in `data` cannot own it",
            "note: Job `shop-db-migrate` is left out: it is a hook of Helm's, which is not there all the time",
        ],
    );
}

#[test]
fn chart_of_workers() {
    passes_all(
        WORKERS,
        "mail",
        &["note: `mail-tls`: not among the manifests, but expected under a name that follows the parent's"],
    );
}
