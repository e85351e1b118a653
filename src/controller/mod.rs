pub(crate) mod queue;
