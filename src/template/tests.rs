mod language;
