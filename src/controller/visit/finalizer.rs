//! Our finalizer on a parent: put on before anything else where a finalize hook exists, taken off when it has finalized.

use serde_json::json;

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::controller::room::Room;

pub(crate) fn has(room: &Room, parent: &Object) -> bool {
    parent.finalizers.iter().any(|finalizer| **finalizer == *room.definition.spec.finalizer)
}

/// Whether the garbage collector has the children: then they are not ours to change.
pub(crate) fn left_to_collector(parent: &Object) -> bool {
    parent.finalizers.iter().any(|finalizer| matches!(&**finalizer, "foregroundDeletion" | "orphan"))
}

pub(crate) async fn add(room: &Room, writer: &Writer<'_>, parent: &Object) -> Result<(), Error> {
    let mut finalizers: Vec<&str> = parent.finalizers.iter().map(|finalizer| &**finalizer).collect();
    finalizers.push(&room.definition.spec.finalizer);
    write(room, writer, parent, &finalizers).await
}

pub(crate) async fn remove(room: &Room, writer: &Writer<'_>, parent: &Object) -> Result<(), Error> {
    let finalizers = parent.finalizers.iter().map(|finalizer| &**finalizer);
    let finalizers: Vec<&str> =
        finalizers.filter(|finalizer| *finalizer != room.definition.spec.finalizer).collect();
    match write(room, writer, parent, &finalizers).await {
        Err(error) if error.is(404) => Ok(()),
        outcome => outcome,
    }
}

/// The list as a whole, guarded by the version it was read at: nobody else's finalizer is lost.
async fn write(room: &Room, writer: &Writer<'_>, parent: &Object, finalizers: &[&str]) -> Result<(), Error> {
    let metadata = json!({"finalizers": finalizers});
    writer.patch_metadata(&room.parents, &room.parent_resource, parent, metadata).await
}
