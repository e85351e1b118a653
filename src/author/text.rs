//! The text of a file that an author wrote, or why it cannot be had.

use std::fs;
use std::path::Path;

use crate::problem::{Place, Problem, Snippet};

/// The whole text. A pipe or a folder in a file's place is a problem, as it would be waited for without an end.
pub(in crate::author) fn read(file: &Path) -> Result<String, Problem> {
    let name = file.display().to_string();
    let whole = |message: String| Problem::new(message).at(Place { file: name.clone(), line: 1, column: 1 });
    let unreadable = |error| whole(format!("the file cannot be read: {error}"));
    if !fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err(whole("this is no file".into()));
    }
    let bytes = fs::read(file).map_err(unreadable)?;
    if [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| bytes.starts_with(mark)) {
        return Err(whole("the file is UTF-16 text".into()).hint("save it as UTF-8"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let (before, rest) = error.as_bytes().split_at(valid);
        let before = String::from_utf8_lossy(before);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let place = Place {
            file: name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
        };
        let text = format!("{}{}", &before[start..], String::from_utf8_lossy(&rest[..end]));
        let problem = Problem::new("the file is not UTF-8 text").at(place);
        let problem = problem.found(format!("the byte 0x{:02X}", rest[0])).hint("save it as UTF-8");
        Problem { snippet: Some(Snippet { text, width: 1 }), ..problem }
    })
}
