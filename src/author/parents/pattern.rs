//! Texts that a regular expression matches, made from the expression.
//!
//! Anchors and word boundaries are taken as met: what is made for a part matches the part.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Answers a number below the given one.
pub(super) type Choose<'a> = &'a mut dyn FnMut(usize) -> usize;

/// More turns of a `*` make no odder text.
const TURNS: u32 = 3;
/// Bytes of a text, and turns of anything while it is made: a pattern of a few letters can ask for millions.
const MOST: usize = 10_000;

/// A text that the pattern matches; `None` where the pattern is none, or matches nothing, or only what is very long.
pub(super) fn matching(pattern: &str, choose: Choose) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = Vec::new();
    write(&hir, choose, &mut text)?;
    String::from_utf8(text).ok()
}

/// A short one, always the same.
pub(super) fn shortest(pattern: &str) -> Option<String> {
    matching(pattern, &mut |_| 0)
}

fn write(hir: &Hir, choose: Choose, text: &mut Vec<u8>) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(class) => text.extend_from_slice(&one_of(class, choose)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(TURNS));
            if most as usize > MOST {
                return None;
            }
            let turns = repetition.min + choose((most - repetition.min + 1) as usize) as u32;
            for _ in 0..turns {
                let before = text.len();
                write(&repetition.sub, choose, text)?;
                if text.len() > MOST {
                    return None;
                }
                if text.len() == before {
                    break;
                }
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, choose, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, choose, text)?;
            }
        }
        HirKind::Alternation(parts) => write(&parts[choose(parts.len())], choose, text)?,
    }
    Some(())
}

/// A member of a class: of a range that reads well where there is one, at an end or in the middle.
fn one_of(class: &Class, choose: Choose) -> Option<Vec<u8>> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start() as u32, range.end() as u32)).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let readable = |(start, end): (u32, u32)| {
        let (start, end) = (start.max(0x21), end.min(0x7e));
        (start <= end).then_some((start, end))
    };
    let mut plain: Vec<(u32, u32)> = ranges.iter().copied().filter_map(readable).collect();
    // Letters and digits first, for the text that always is the same.
    plain.sort_by_key(|(start, end)| {
        !(*start..=*end).contains(&u32::from(b'a')) as u8 + !(*start..=*end).contains(&u32::from(b'1')) as u8
    });
    let from = if plain.is_empty() { ranges } else { plain };
    let (start, end) = *from.get(choose(from.len()))?;
    let preferred = [u32::from(b'a'), u32::from(b'1')].into_iter().find(|c| (start..=end).contains(c));
    let code = match choose(3) {
        0 => preferred.unwrap_or(start),
        1 => end,
        _ => start + choose((end - start + 1) as usize) as u32,
    };
    Some(char::from_u32(code)?.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_text_reads_well() {
        let shortest = |pattern| shortest(pattern).unwrap();
        assert_eq!(shortest("^[0-9]+Gi$"), "1Gi");
        assert_eq!(shortest("^(fast|slow)$"), "fast");
        assert_eq!(shortest("^[a-z]([-a-z0-9]*[a-z0-9])?$"), "a");
        assert_eq!(shortest(r"^[^\r\n]*$"), "");
        assert_eq!(super::shortest("("), None);
        for endless in
            ["a{4294967295}", "(((a{900}){900}){900}){900}", "((((){900}){900}){900}){900}b{9999999}"]
        {
            assert_eq!(super::shortest(endless), None, "{endless}");
        }
        assert_eq!(shortest("((((){900}){900}){900}){900}b"), "b");
    }

    #[test]
    fn every_choice_gives_a_text_that_is_matched() {
        let pattern = "^(a|b[0-9]{2,3})+-[^x]$";
        let mut turn = 0_usize;
        for _ in 0..200 {
            let text = matching(pattern, &mut |below| {
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (turn >> 33) % below
            });
            let text = text.unwrap();
            let (head, tail) = text.split_once('-').unwrap();
            assert!(head.starts_with(['a', 'b']) && tail.chars().count() == 1 && tail != "x", "{text}");
        }
    }
}
