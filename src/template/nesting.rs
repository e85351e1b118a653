//! How deep a template may be built, told from its tokens before a tree is made of them.
//!
//! The engine makes a tree of a source, and reads, compiles and frees it step by step inward, as our own walks do: each
//! step takes some of the thread's stack, which nobody can refuse once it is used up. The engine itself bounds brackets
//! and blocks only, and neither chains of operators and filters nor `elif`s.

use std::ops::Range;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::template::fault::Fault;
use crate::template::span::range;

/// Brackets inside of each other. The engine's own bound is 150 steps, of which a bracket with its guards takes about 4.
const BRACKETS: usize = 30;
/// Blocks and `elif`s inside of each other.
const BLOCKS: usize = 100;
/// Operators, filters, look-ups, calls and brackets around one value. 300 steps inward take less than a quarter of the
/// 2 MiB of stack that a thread has.
const OPERATIONS: usize = 200;

/// Refuses a template that is built too deep, and says where it crosses the bound.
pub(in crate::template) fn check(text: &str, syntax: SyntaxConfig) -> Result<(), (Fault, Range<usize>)> {
    let mut depth = Depth::default();
    // What is no token is told by the parser.
    for (token, span) in tokenize(text, false, syntax).map_while(Result::ok) {
        depth.token(&token).map_err(|fault| (fault, range(span)))?;
    }
    Ok(())
}

#[derive(Default)]
struct Depth {
    /// The blocks that are open, each with the `elif`s that it had so far.
    blocks: Vec<usize>,
    /// The tag or expression under way.
    tag: Tag,
    /// What is open in it, from the tag itself to the innermost bracket.
    levels: Vec<Level>,
}

/// What is known of a tag so far.
#[derive(Default)]
struct Tag {
    /// Whether the next token says which one it is.
    begins: bool,
    /// A `set` without a sign for it is a block.
    is_set: bool,
}

/// The operations between two brackets, or two commas.
#[derive(Default)]
struct Level {
    /// What comes before binds to what is here: the operators that are around the first value.
    left: usize,
    /// What is looked up in, called on or filtered from the value that is read now.
    operand: usize,
    /// What comes after is inside of these: `not`, and the `else` of a choice.
    right: usize,
    /// The deepest part that is read.
    deepest: usize,
    /// Whether a value was read, so that a bracket calls it or looks into it.
    has_value: bool,
}

impl Level {
    fn depth(&self) -> usize {
        self.deepest.max(self.right + self.left.max(self.operand))
    }

    /// Another item begins.
    fn comma(&mut self) {
        *self = Level { deepest: self.depth(), ..Level::default() };
    }

    fn operator(&mut self) {
        self.left = self.left.max(self.operand) + 1;
        (self.operand, self.has_value) = (0, false);
    }

    /// `a if b else c`: what follows is inside of the choice, what came before is beside it.
    fn otherwise(&mut self) {
        let (right, deepest) = (self.right + 1, self.depth() + 1);
        *self = Level { right, deepest, ..Level::default() };
    }

    fn negation(&mut self) {
        self.right += 1;
        self.has_value = false;
    }

    fn step(&mut self) {
        self.operand += 1;
    }

    /// What was in brackets, which is a value of its own or belongs to the one before.
    fn bracket(&mut self, inner: usize) {
        self.operand = self.operand.max(inner) + 1;
        self.has_value = true;
    }
}

impl Depth {
    fn token(&mut self, token: &Token) -> Result<(), Fault> {
        match token {
            Token::TemplateData(_) => return Ok(()),
            Token::VariableStart | Token::BlockStart => {
                self.levels = vec![Level::default()];
                self.tag = Tag { begins: matches!(token, Token::BlockStart), is_set: false };
                return Ok(());
            }
            Token::VariableEnd => return Ok(()),
            Token::BlockEnd if std::mem::take(&mut self.tag.is_set) => return self.open(),
            Token::BlockEnd => return Ok(()),
            Token::Ident(word) if std::mem::take(&mut self.tag.begins) => return self.begin(word),
            _ => self.part(token),
        }
        match () {
            () if self.levels.len() > BRACKETS + 1 => {
                Err(too_deep(format!("at most {BRACKETS} brackets inside of each other")).hint(IN_PARTS))
            }
            () if self.operations() > OPERATIONS => Err(Fault::new("this expression is too long")
                .expected(format!(
                    "at most {OPERATIONS} operators, filters, look-ups and brackets around one value"
                ))
                .hint(IN_PARTS)),
            () => Ok(()),
        }
    }

    /// A part of an expression.
    fn part(&mut self, token: &Token) {
        if matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) {
            return self.levels.push(Level::default());
        }
        if matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose)
            && self.levels.len() > 1
        {
            let inner = self.levels.pop().map_or(0, |level| level.depth());
            self.levels.last_mut().into_iter().for_each(|level| level.bracket(inner));
            return;
        }
        if matches!(token, Token::Assign) && self.levels.len() == 1 {
            self.tag.is_set = false;
        }
        let Some(level) = self.levels.last_mut() else { return };
        match token {
            Token::Comma | Token::Colon | Token::Assign => level.comma(),
            Token::Dot | Token::Pipe | Token::Ident("is") => level.step(),
            Token::Ident("else") => level.otherwise(),
            Token::Ident("not") if !level.has_value => level.negation(),
            Token::Ident("not") => {}
            Token::Ident("and" | "or" | "in" | "if") => level.operator(),
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => {
                level.has_value = true;
            }
            _ => level.operator(),
        }
    }

    /// How many operations are around one value, in all brackets that are open.
    fn operations(&self) -> usize {
        let outer = self.levels.len().saturating_sub(1);
        self.levels.iter().map(|level| level.right).sum::<usize>()
            + outer
            + self.levels.last().map_or(0, Level::depth)
    }

    /// The word that says which tag it is.
    fn begin(&mut self, word: &str) -> Result<(), Fault> {
        match word {
            "set" => self.tag.is_set = true,
            "for" | "if" | "with" | "filter" | "block" | "macro" | "call" | "autoescape" => {
                return self.open();
            }
            "elif" => {
                self.blocks.last_mut().into_iter().for_each(|elifs| *elifs += 1);
                return self.bounded();
            }
            _ if word.starts_with("end") => drop(self.blocks.pop()),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Fault> {
        self.blocks.push(0);
        self.bounded()
    }

    fn bounded(&self) -> Result<(), Fault> {
        let elifs: usize = self.blocks.iter().sum();
        match self.blocks.len() + elifs {
            depth if depth <= BLOCKS => Ok(()),
            _ => {
                let fault = too_deep(format!("at most {BLOCKS} blocks and `elif`s inside of each other"));
                let many = "look the value up in a map, `{% set sizes = {…} %}` and `sizes[name]`";
                Err(if elifs > BLOCKS / 2 {
                    fault.hint(many)
                } else {
                    fault.hint("make a macro of the inner blocks")
                })
            }
        }
    }
}

const IN_PARTS: &str = "compute a part of it before: `{% set part = … %}`";

fn too_deep(expected: String) -> Fault {
    Fault::new("this is nested too deep").expected(expected)
}

/// What is said where the engine's own bound is crossed first.
pub(in crate::template) fn beyond_the_engine() -> Fault {
    too_deep("fewer blocks and brackets inside of each other".to_string()).hint(IN_PARTS)
}
