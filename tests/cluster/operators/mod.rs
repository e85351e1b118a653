//! The three operators as they are shipped, each followed through its life: its entry of `controllers.yaml`, its hooks, its
//! kind, on a real control plane.

mod backupschedule;
mod backupschedule_away;
mod backupschedule_handed_over;
mod backupschedule_killed;
mod history;
mod kinds;
mod mysql;
pub mod operator;
mod postgresqlcluster;
mod postgresqlcluster_deleted;
mod postgresqlcluster_upgraded;
mod postgresqlcluster_versions;
