mod budget;
mod language;
pub(crate) mod mutation;
mod nesting;
mod noise;
mod secrets;
mod speed;
mod steady;
mod values;

pub(super) use crate::template::effort::spent as cpu_time;
