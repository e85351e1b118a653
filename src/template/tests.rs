mod language;
mod speed;
mod values;
