//! Parents of the three operators, by their numbers.

use serde_json::{Value, json};

pub fn name(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number:05}")
}

pub fn schedule(number: usize) -> Value {
    json!({
        "apiVersion": "ops.io/v1alpha1", "kind": "BackupSchedule", "metadata": {"name": name("s", number)},
        "spec": {
            "databaseHost": name("m", number), "databaseName": "orders", "databaseUser": "backup",
            "s3Bucket": "example-backups", "s3Prefix": "mysql/orders",
            "schedule": "* * * * *", "timeZone": "Europe/Berlin",
        },
    })
}

pub fn postgresql(number: usize) -> Value {
    json!({
        "apiVersion": "db.example.com/v1", "kind": "PostgreSQLCluster",
        "metadata": {"name": name("p", number)},
        "spec": {
            "replicas": 3, "version": "16", "storage": {"size": "1Gi"},
            "backup": {"schedule": "30 2 * * *", "retentionDays": 14},
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        },
    })
}

pub fn mysql(number: usize) -> Value {
    json!({
        "apiVersion": "database.example.com/v1", "kind": "MySQL", "metadata": {"name": name("m", number)},
        "spec": {
            "replicas": 2, "version": "8.0", "storageSize": "1Gi",
            "config": {"max_connections": "200", "slow_query_log": "ON"},
            "passwordSecret": {"name": format!("{}-root", name("m", number))},
        },
    })
}
