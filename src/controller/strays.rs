//! Objects that carry a definition's finalizer without being its parents any more, where it has no finalize hook left.
//!
//! They lack the labels that its parents are watched by, so that no visit takes the finalizer off. That is done once, when
//! the definition starts: afterwards none comes to be like that.

use std::collections::BTreeSet;
use std::time::Duration;

use tracing::{info, warn};

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::controller::room::Room;

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// Takes the finalizer off them, and then waits for ever.
pub(super) async fn let_go(room: &Room) {
    let mut pause = FIRST_RETRY;
    while let Err(error) = attempt(room).await {
        if pause == FIRST_RETRY {
            let controller = &room.definition.name;
            warn!(controller, %error, "finalizers cannot be taken off objects that are not selected, will retry");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_RETRY);
    }
    std::future::pending().await
}

async fn attempt(room: &Room) -> Result<(), Error> {
    let labels = &room.parents.labels;
    if labels.is_empty() {
        return Ok(());
    }
    let finalizer = &room.definition.spec.finalizer;
    let is_stray = |object: &Object| {
        !labels.matches(&object.labels) && object.finalizers.iter().any(|known| **known == **finalizer)
    };
    let finalizers = BTreeSet::from([finalizer.clone()]);
    for stray in room.cluster.look(&room.parent_resource, is_stray).await? {
        room.cluster.take_off(&room.parent_resource, &stray, &finalizers).await?;
        info!(controller = room.definition.name, object = %stray.key, "finalizer taken off an object that is not selected");
    }
    Ok(())
}
