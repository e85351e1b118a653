//! What a render makes: documents that know which line of which template wrote each of their fields.

use std::ops::Range;
use std::sync::Arc;

use minijinja::{OutputSpan, OutputSpanKind};
use serde_json::Value as Json;

use crate::problem::{Place, Problem, floor};
use crate::template::inputs::Inputs;
use crate::template::library::Files;
use crate::template::report;
use crate::template::source::Source;
use crate::template::yaml::{Origin, Places, Trap, Trouble};

/// A text that a file rendered to: an offset in it leads to the source that wrote it.
#[derive(Debug)]
pub(in crate::template) struct Rendered {
    pub files: Arc<Files>,
    pub main: String,
    pub spans: Vec<OutputSpan>,
}

impl Rendered {
    /// The file that wrote the byte at `offset`, and the range of its source: a point in text, a whole expression.
    fn source(&self, offset: usize) -> Option<(&str, &Source, Range<usize>)> {
        let before = self.spans.partition_point(|span| span.output_range().start <= offset);
        let span = self.spans.get(before.saturating_sub(1))?;
        let (file, source) = self.files.find(span.name())?;
        let written = span.source_range();
        let range = match span.kind() {
            OutputSpanKind::Raw => {
                let at =
                    source.original_offset(written.start + offset.saturating_sub(span.output_range().start));
                at..at
            }
            _ => source.original(written),
        };
        Some((file, source, range))
    }

    pub(in crate::template) fn problem(&self, trouble: Trouble) -> Problem {
        let Some((file, source, range)) = self.source(trouble.range.start) else {
            return trouble.fault.without_values("").into_problem();
        };
        let problem = trouble.fault.without_values(&source.text).into_problem();
        let end = if range.is_empty() { range.start + trouble.range.len() } else { range.end };
        let range = range.start..floor(&source.text, end);
        let problem = report::at(&self.files, file, source, range, problem);
        match trouble.first {
            Some(first) => problem.found(format!("the first one at {}", self.place(first))),
            None => problem,
        }
    }
}

impl Rendered {
    /// What the expressions that wrote this range of the output are computed from, and the conditions it stands under.
    fn written(&self, output: Range<usize>) -> (Vec<String>, Vec<String>) {
        let conditions = self.source(output.start).map_or(Vec::new(), |(file, source, range)| {
            Inputs::of(file, &source.text).conditions(range.start)
        });
        let first = self.spans.partition_point(|span| span.output_range().end <= output.start);
        let spans = self.spans[first..].iter().take_while(|span| span.output_range().start < output.end);
        let mut inputs = Vec::new();
        for span in spans.filter(|span| span.kind() != OutputSpanKind::Raw) {
            let Some((file, source)) = self.files.find(span.name()) else { continue };
            for input in Inputs::of(file, &source.text).at(&source.original(span.source_range())) {
                if !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
        }
        (inputs, conditions)
    }
}

impl Origin for Rendered {
    fn written(&self, output: Range<usize>) -> (Vec<String>, Vec<String>) {
        Rendered::written(self, output)
    }

    fn place(&self, offset: usize) -> Place {
        match self.source(offset) {
            Some((file, source, range)) => report::place(&self.files, file, source, range.start),
            None => Place { file: self.files.shown(&self.main), line: 1, column: 1 },
        }
    }
}

/// Where a field comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub place: Place,
    /// What its expressions are computed from: `parent.spec.image`.
    pub inputs: Vec<String>,
    /// The conditions and loops that it stands in, outermost first.
    pub conditions: Vec<String>,
}

/// One YAML document that a render made.
#[derive(Debug)]
pub(crate) struct Document {
    pub value: Json,
    pub(in crate::template) places: Places,
}

impl Document {
    /// Where the document begins, in the template that made it.
    pub(crate) fn place(&self) -> Place {
        self.places.start()
    }

    /// Its plain scalars that YAML 1.1 takes for something else, with their places.
    pub(crate) fn traps(&self) -> impl Iterator<Item = (Place, &Trap)> {
        self.places.traps()
    }

    /// Where the field at `path` was written, or its nearest known parent. Elements are keys, or indices as text.
    pub(crate) fn place_of(&self, path: &[&str]) -> Option<Place> {
        self.places.place(path)
    }

    /// Where the field at `path` comes from, or its nearest known parent.
    pub(crate) fn written(&self, path: &[&str]) -> Written {
        let (inputs, conditions) = self.places.written(path);
        let place = self.place_of(path).unwrap_or_else(|| self.place());
        Written { place, inputs, conditions }
    }
}
