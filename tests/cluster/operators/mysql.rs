//! MySQL, from its creation to its deletion.

use std::time::Duration;

use serde_json::{Value, json};

use crate::operators::operator::{Operator, condition, uid};

const PODS: &str = "mysql.database.example.com/cr=shop";
const QUIET: Duration = Duration::from_secs(1);

fn password(my: &Operator) -> String {
    let secret = my.lab.get(&my.lab.path("v1", "secrets", "shop-root"));
    secret["data"]["password"].as_str().expect("it has one").to_owned()
}

fn pods(my: &Operator) -> Vec<String> {
    let pods = my.list("v1", "pods", PODS);
    let mut uids: Vec<String> = pods.iter().map(|pod| uid(pod).to_owned()).collect();
    uids.sort();
    uids
}

#[track_caller]
fn wait_running(my: &Operator, shop: &str, replicas: u64) -> Value {
    let shop = my.wait_phase(shop, "Running");
    let status = &shop["status"];
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(replicas), &json!(replicas)));
    assert_eq!(
        (&status["message"], status.get("lastProgressTime")),
        (&json!("All replicas are ready"), None)
    );
    assert_eq!(condition(&shop, "Ready")["reason"], "AllReplicasReady");
    shop
}

#[test]
fn mysql_lives_from_its_creation_to_its_deletion() {
    let my = Operator::new("mysql", "mysql");
    let lab = &my.lab;
    let set = lab.path("apps/v1", "statefulsets", "shop");
    let service = lab.path("v1", "services", "shop");
    let config = lab.path("v1", "configmaps", "shop-config");
    let mut controller = my.start();
    let settings = json!({"max_connections": "100"});
    let spec = json!({"replicas": 2, "version": "8.0", "storageSize": "1Gi", "config": settings});

    let shop = my.add("shop", spec);
    wait_running(&my, &shop, 2);
    let (drawn, first) = (password(&my), lab.get(&set));
    assert_eq!(lab.get(&service)["spec"]["clusterIP"], "None");
    assert_eq!(lab.get(&config)["data"]["my.cnf"], "[mysqld]\nmax_connections=100\n");
    for path in [&set, &service, &config, &lab.path("v1", "secrets", "shop-root")] {
        let owner = &lab.get(path)["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["controller"]), (&json!("MySQL"), &json!(true)), "{path}");
    }

    assert_eq!(my.columns("my"), ["NAME", "REPLICAS", "VERSION", "STATUS", "AGE"]);
    my.kubectl(&["scale", "my/shop", "--replicas=3"]);
    wait_running(&my, &shop, 3);
    let scale = lab.get(&format!("{shop}/scale"));
    assert_eq!(scale["status"]["selector"], "app=mysql,mysql.database.example.com/cr=shop");
    assert_eq!(my.list("v1", "pods", PODS).len(), 3);

    lab.merge(&set, json!({"spec": {"replicas": 1}}));
    lab.wait(&set, "it has three replicas again", |set| set["spec"]["replicas"] == 3);
    lab.merge(&service, json!({"spec": {"selector": {"app": "theirs"}}}));
    lab.wait(&service, "it selects its pods again", |it| it["spec"]["selector"]["app"] == "mysql");
    for path in [&service, &config, &set] {
        let before = lab.get(path);
        lab.plane.delete(path);
        lab.wait(path, "it is there again", |now| uid(now) != uid(&before));
    }
    wait_running(&my, &shop, 3);

    let before = pods(&my);
    my.set_spec(&shop, json!({"config": {"max_connections": "200"}}));
    lab.wait_until("each pod was made anew", || {
        let now = pods(&my);
        now.len() == 3 && now.iter().all(|pod| !before.contains(pod))
    });
    wait_running(&my, &shop, 3);
    assert_eq!(lab.get(&config)["data"]["my.cnf"], "[mysqld]\nmax_connections=200\n");

    my.kill_amid(controller, || {
        let config = json!({"max_connections": "300", "slow_query_log": "ON"});
        my.set_spec(&shop, json!({"version": "5.7", "replicas": 2, "config": config}));
    });
    controller = my.start();
    wait_running(&my, &shop, 2);
    let image = |set: &Value| set["spec"]["template"]["spec"]["containers"][0]["image"] == "mysql:5.7";
    lab.wait(&set, "it has the new version", image);
    assert_eq!(lab.get(&config)["data"]["my.cnf"], "[mysqld]\nmax_connections=300\nslow_query_log=ON\n");

    // B76: the template of the claims stays, the claims grow, and no pod is touched.
    let before = pods(&my);
    my.set_spec(&shop, json!({"storageSize": "2Gi"}));
    for ordinal in 0..2 {
        let claim = lab.path("v1", "persistentvolumeclaims", &format!("data-shop-{ordinal}"));
        lab.wait(&claim, "it has grown", |claim| claim["status"]["capacity"]["storage"] == "2Gi");
    }
    my.wait_condition(&shop, "StorageExpanded", "ExpansionAsked");
    assert_eq!(pods(&my), before);

    // A server that is added has a claim of the old size, which grows as soon as it is bound.
    my.kubectl(&["scale", "my/shop", "--replicas=4"]);
    let claim = lab.path("v1", "persistentvolumeclaims", "data-shop-3");
    lab.wait(&claim, "it has grown", |claim| claim["status"]["capacity"]["storage"] == "2Gi");
    wait_running(&my, &shop, 4);
    lab.wait_synced(&shop);

    my.wait_settled(QUIET);
    assert!(controller.terminate().success());
    let _controller = my.restart_in_silence(&["shop"]);
    assert_eq!(password(&my), drawn, "it is the one that was drawn first");
    let secrets = lab.writes().iter().filter(|write| write.contains(" secrets ")).count();
    assert_eq!(secrets, 1, "{:?}", lab.writes());
    assert_ne!(uid(&lab.get(&set)), uid(&first));

    lab.plane.delete(&shop);
    lab.wait_gone(&shop);
    let own = [("apps/v1", "statefulsets"), ("v1", "services"), ("v1", "secrets"), ("v1", "pods")];
    my.wait_none_left(&own);
    lab.wait_gone(&config);
    // Claims of a StatefulSet outlive it on purpose: they hold the data.
    let claims = lab.get(&lab.path("v1", "persistentvolumeclaims", ""));
    assert_eq!(claims["items"].as_array().map(Vec::len), Some(4));
}
