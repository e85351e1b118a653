//! A template's source: what is checked before it ever runs, and the guards that are put around its expressions.
//!
//! The engine compiles the guarded text, so its offsets are those of the guarded text; `Source::original` leads back.
//! Guards add no line, and nothing outside of expressions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, Macro, Spanned, Stmt, UnaryOpKind};
use minijinja::machinery::{Span, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;

use crate::template::branches::{FILTER, Fork, Site};
use crate::template::fault::{Fault, Subject};
use crate::template::habits;
use crate::template::nesting;
use crate::template::operator::Guard;
use crate::template::placeholder::OPEN;
use crate::template::span::{name_in, range, range_of, within};
use crate::template::syntax;

/// One file of a library.
#[derive(Debug)]
pub(in crate::template) struct Source {
    /// As the author wrote it.
    pub text: String,
    /// What the engine compiles.
    pub guarded: String,
    insertions: Vec<Insertion>,
    /// Names that this file gives to variables, macros and modules.
    pub assigned: BTreeSet<String>,
    /// Names that must exist, with where they are used.
    pub uses: Vec<Use>,
    /// Filters, tests and calls.
    calls: Vec<CallSite>,
    /// Conditions and loops, where they are watched.
    pub sites: Vec<Site>,
}

/// A filter, a test or a call: the engine's own range of it, and its arguments.
#[derive(Debug)]
struct CallSite {
    range: Range<usize>,
    receiver: Option<Range<usize>>,
    /// By position, then by name; the operand of a filter or a test is the first.
    arguments: Vec<(Option<String>, Range<usize>)>,
}

/// A piece of a guard.
#[derive(Debug)]
struct Insertion {
    /// In the author's text.
    offset: usize,
    /// In the guarded text.
    guarded: usize,
    text: Cow<'static, str>,
    /// What the guard is about, in the author's text.
    subject: Range<usize>,
}

/// A name and what it is used as.
#[derive(Debug)]
pub(in crate::template) struct Use {
    pub kind: Kind,
    pub name: String,
    pub range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Kind {
    Variable,
    Function,
    Filter,
    Test,
    File,
    /// Something that has no meaning here, and why.
    Refused(&'static str, &'static str),
}

impl Source {
    /// Reads `text`; the fault is one of the author's text. `first_site` numbers the conditions and loops of a file that is
    /// watched.
    pub(in crate::template) fn read(
        name: &str,
        text: String,
        syntax: SyntaxConfig,
        functions: &BTreeSet<&'static str>,
        first_site: Option<usize>,
    ) -> Result<Source, (Fault, Range<usize>)> {
        nesting::check(&text, syntax.clone())?;
        let tree = parse(&text, name, syntax).map_err(|error| syntax::explain(&text, &error))?;
        let mut walk = Walk {
            text: &text,
            functions,
            first_site,
            sites: Vec::new(),
            insertions: Vec::new(),
            assigned: BTreeSet::new(),
            uses: Vec::new(),
            calls: Vec::new(),
            modules: BTreeSet::new(),
        };
        walk.statement(&tree);
        if let Some(at) = text.find(OPEN) {
            walk.refuse(
                "the character U+E000",
                "it marks values inside this program",
                at..at + OPEN.len_utf8(),
            );
        }
        for (range, why) in habits::dollars(&text) {
            walk.refuse("`$` before a value", why, range);
        }
        let Walk { mut insertions, assigned, uses, calls, sites, .. } = walk;
        insertions.sort_by_key(|insertion| insertion.offset);
        let guarded = insert(&text, &mut insertions);
        Ok(Source { guarded, insertions, assigned, uses, calls, sites, text })
    }

    /// A text that is no template.
    pub(in crate::template) fn plain(text: String) -> Source {
        Source {
            guarded: text.clone(),
            text,
            insertions: Vec::new(),
            assigned: BTreeSet::new(),
            uses: Vec::new(),
            calls: Vec::new(),
            sites: Vec::new(),
        }
    }

    /// The range of the author's text that a range of the guarded text is about.
    pub(in crate::template) fn original(&self, guarded: Range<usize>) -> Range<usize> {
        if let Some(guard) = self.insertion_at(guarded.start) {
            return guard.subject.clone();
        }
        within(&self.text, self.original_offset(guarded.start)..self.original_offset(guarded.end))
    }

    /// The part of the call at `call` that a fault is about.
    pub(in crate::template) fn part(&self, call: &Range<usize>, subject: &Subject) -> Option<Range<usize>> {
        let site = self.calls.iter().find(|site| site.range == *call)?;
        let argument = |found: Option<&(Option<String>, Range<usize>)>| found.map(|(_, range)| range.clone());
        match subject {
            Subject::Whole => None,
            Subject::Argument(index) => argument(site.arguments.get(*index)),
            Subject::Named(name) => {
                argument(site.arguments.iter().find(|(known, _)| known.as_ref() == Some(name)))
            }
            Subject::Text(text) => {
                argument(site.arguments.iter().find(|(_, range)| self.text.get(range.clone()) == Some(text)))
            }
            Subject::Receiver => site.receiver.clone(),
            Subject::Method(name) => {
                let end = site.receiver.as_ref()?.end;
                let start = end + self.text.get(end..)?.find(name.as_str())?;
                Some(start..start + name.len())
            }
        }
    }

    fn insertion_at(&self, guarded: usize) -> Option<&Insertion> {
        let before = self.insertions.partition_point(|insertion| insertion.guarded <= guarded);
        let insertion = self.insertions.get(before.checked_sub(1)?)?;
        let is_name = insertion.text.starts_with([')', '|']);
        (is_name && guarded < insertion.guarded + insertion.text.len()).then_some(insertion)
    }

    pub(in crate::template) fn original_offset(&self, guarded: usize) -> usize {
        let before = self.insertions.partition_point(|insertion| insertion.guarded < guarded);
        let added: usize = self.insertions[..before].iter().map(|insertion| insertion.text.len()).sum();
        match before.checked_sub(1).map(|last| &self.insertions[last]) {
            Some(last) if guarded < last.guarded + last.text.len() => last.offset,
            _ => guarded - added,
        }
    }
}

/// Writes the guarded text, and notes where each piece went.
fn insert(text: &str, insertions: &mut [Insertion]) -> String {
    let mut guarded = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for insertion in insertions {
        guarded.push_str(&text[done..insertion.offset]);
        done = insertion.offset;
        insertion.guarded = guarded.len();
        guarded.push_str(&insertion.text);
    }
    guarded.push_str(&text[done..]);
    guarded
}

/// A walk over a template's tree.
struct Walk<'f> {
    text: &'f str,
    /// What the environment can call: no macros.
    functions: &'f BTreeSet<&'static str>,
    /// The number of the first condition or loop, where they are watched.
    first_site: Option<usize>,
    sites: Vec<Site>,
    insertions: Vec<Insertion>,
    assigned: BTreeSet<String>,
    uses: Vec<Use>,
    calls: Vec<CallSite>,
    modules: BTreeSet<String>,
}

impl Walk<'_> {
    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
            Stmt::ForLoop(each) => {
                self.target(&each.target);
                self.guarded(&each.iter, Guard::Items);
                self.watch(&each.iter, Fork::Loop);
                each.filter_expr.iter().for_each(|filter| self.expression(filter));
                each.filter_expr.iter().for_each(|filter| self.watch(filter, Fork::Condition));
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.watch(&condition.expr, Fork::Condition);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    self.target(target);
                    self.expression(value);
                }
                self.statements(&with.body);
            }
            Stmt::Set(set) => {
                self.target(&set.target);
                self.kept(&set.expr, matches!(set.target, Expr::GetAttr(_)));
            }
            Stmt::SetBlock(set) => {
                self.target(&set.target);
                set.filter.iter().for_each(|filter| self.expression(filter));
                self.statements(&set.body);
            }
            Stmt::AutoEscape(block) => {
                self.refuse("`autoescape`", "values are data, nothing is escaped", range(block.span()))
            }
            Stmt::FilterBlock(block) => {
                self.expression(&block.filter);
                self.statements(&block.body);
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Import(import) => {
                self.target(&import.name);
                if let Expr::Var(name) = &import.name {
                    self.modules.insert(name.id.to_string());
                }
                self.file(&import.expr, false);
            }
            Stmt::FromImport(import) => {
                for (name, alias) in &import.names {
                    self.target(alias.as_ref().unwrap_or(name));
                }
                self.file(&import.expr, false);
            }
            Stmt::Extends(extends) => self.file(&extends.name, false),
            Stmt::Include(include) => self.file(&include.name, include.ignore_missing),
            Stmt::Macro(declared) => self.declaration(declared),
            Stmt::CallBlock(block) => {
                self.called(&block.call, None);
                self.declaration(&block.macro_decl);
            }
            Stmt::Do(statement) => self.call(&statement.call),
        }
    }

    fn declaration(&mut self, declared: &Spanned<Macro>) {
        self.assigned.insert(declared.name.to_string());
        declared.args.iter().for_each(|argument| self.target(argument));
        declared.defaults.iter().for_each(|default| self.expression(default));
        self.statements(&declared.body);
    }

    /// Notes the names that an assignment gives.
    fn target(&mut self, target: &Expr) {
        match target {
            Expr::Var(name) => {
                self.assigned.insert(name.id.to_string());
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.target(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.target(item)),
            other => self.expression(other),
        }
    }

    fn file(&mut self, name: &Expr, may_be_missing: bool) {
        match name {
            Expr::Const(constant) if !may_be_missing => {
                if let Some(file) = constant.value.as_str() {
                    self.note(Kind::File, file, range(constant.span()));
                }
            }
            Expr::Const(_) | Expr::List(_) => self.expression(name),
            _ => self.guarded(name, Guard::Operand),
        }
    }

    /// What is kept in a variable. Plain look-ups cannot grow.
    fn kept(&mut self, value: &Expr, in_namespace: bool) {
        match value {
            Expr::Const(_) => {}
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) if !in_namespace => self.expression(value),
            _ if in_namespace => self.guarded(value, Guard::Stored),
            _ => self.guarded(value, Guard::Kept),
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Var(name) => self.note(Kind::Variable, name.id, range(name.span())),
            Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.enclosed(&slice.expr, Guard::Operand);
                for bound in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
                    self.guarded(bound, Guard::Operand);
                }
            }
            Expr::UnaryOp(operation) => match operation.op {
                UnaryOpKind::Not => self.expression(&operation.expr),
                UnaryOpKind::Neg => self.enclosed(&operation.expr, Guard::Operand),
            },
            Expr::BinOp(operation) => {
                let (left, right) = guards_of(operation.op);
                self.operand(&operation.left, left);
                self.operand(&operation.right, right);
            }
            Expr::Compare(comparison) => {
                self.guarded(&comparison.expr, Guard::Operand);
                comparison.ops.iter().for_each(|operation| self.guarded(&operation.expr, Guard::Operand));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr);
                self.watch(&choice.test_expr, Fork::Condition);
                self.expression(&choice.true_expr);
                choice.false_expr.iter().for_each(|other| self.expression(other));
            }
            Expr::Filter(filter) => {
                self.note(Kind::Filter, filter.name, name_in(range(filter.span()), filter.name));
                let lenient = matches!(filter.name, "default" | "d");
                filter.expr.iter().for_each(|operand| self.lenient(operand, lenient));
                self.call_site(filter.span(), filter.expr.as_ref(), &filter.args);
            }
            Expr::Test(test) => {
                self.note(Kind::Test, test.name, name_in(range(test.span()), test.name));
                self.lenient(&test.expr, matches!(test.name, "defined" | "undefined"));
                self.call_site(test.span(), Some(&test.expr), &test.args);
            }
            Expr::GetAttr(lookup) => self.expression(&lookup.expr),
            Expr::GetItem(lookup) => {
                match &lookup.expr {
                    Expr::Var(_) | Expr::Call(_) => self.enclosed(&lookup.expr, Guard::Settled),
                    other => self.expression(other),
                }
                self.guarded(&lookup.subscript_expr, Guard::Operand);
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => {
                map.keys.iter().for_each(|key| self.guarded(key, Guard::Operand));
                map.values.iter().for_each(|value| self.expression(value));
            }
        }
    }

    /// An operand that may be a name which does not exist.
    fn lenient(&mut self, operand: &Expr, lenient: bool) {
        if !(lenient && matches!(operand, Expr::Var(_))) {
            self.expression(operand);
        }
    }

    fn operand(&mut self, operand: &Expr, guard: Option<Guard>) {
        match guard {
            Some(guard) => self.guarded(operand, guard),
            None => self.expression(operand),
        }
    }

    fn call(&mut self, call: &Spanned<Call>) {
        self.called(call, Some(Guard::Callee));
    }

    /// No guard in `{% call name() %}`: a parenthesis there would begin the caller's own arguments.
    fn called(&mut self, call: &Spanned<Call>, guard: Option<Guard>) {
        let macro_guard = match &call.expr {
            Expr::Var(name) if matches!(name.id, "loop" | "super") => None,
            Expr::Var(name) => {
                self.note(Kind::Function, name.id, range(name.span()));
                guard.filter(|_| !self.functions.contains(name.id))
            }
            Expr::GetAttr(lookup) => match &lookup.expr {
                Expr::Var(base) if base.id == "self" => None,
                Expr::Var(base) if self.modules.contains(base.id) => guard,
                base => {
                    self.expression(base);
                    None
                }
            },
            other => {
                self.expression(other);
                None
            }
        };
        if let Some(guard) = macro_guard {
            self.guard(&call.expr, guard);
            self.enclose(&call.expr);
        }
        self.call_site(call.span(), None, &call.args);
        if let (Expr::GetAttr(lookup), Some(site)) = (&call.expr, self.calls.last_mut()) {
            site.receiver = Some(range_of(self.text, &lookup.expr));
        }
    }

    fn call_site(&mut self, span: Span, operand: Option<&Expr>, arguments: &[CallArg]) {
        let mut noted: Vec<_> =
            operand.map(|operand| (None, range_of(self.text, operand))).into_iter().collect();
        for argument in arguments {
            let (name, value) = match argument {
                CallArg::Kwarg(name, value) => (Some(name.to_string()), value),
                CallArg::Pos(value) | CallArg::PosSplat(value) | CallArg::KwargSplat(value) => (None, value),
            };
            match argument {
                CallArg::PosSplat(_) => self.guarded(value, Guard::Items),
                CallArg::KwargSplat(_) => self.guarded(value, Guard::Operand),
                CallArg::Pos(_) | CallArg::Kwarg(..) => self.expression(value),
            }
            noted.push((name, range_of(self.text, value)));
        }
        self.calls.push(CallSite { range: range(span), receiver: None, arguments: noted });
    }

    /// Walks into an operand, and guards it unless its value is certain to be there.
    fn guarded(&mut self, operand: &Expr, guard: Guard) {
        self.expression(operand);
        if !is_certain(operand, guard) {
            self.guard(operand, guard);
        }
    }

    /// The same for an operand that something is written close behind, or a minus close before: a filter binds less.
    fn enclosed(&mut self, operand: &Expr, guard: Guard) {
        self.guarded(operand, guard);
        if !is_certain(operand, guard) {
            self.enclose(operand);
        }
    }

    /// Lets the value of a condition or a loop be seen, where it is watched.
    fn watch(&mut self, operand: &Expr, fork: Fork) {
        let Some(first) = self.first_site else { return };
        let number = first + self.sites.len();
        self.filter(operand, format!("{FILTER}({number}, {})", fork == Fork::Loop));
        self.sites.push(Site { fork, range: range_of(self.text, operand) });
    }

    fn guard(&mut self, operand: &Expr, guard: Guard) {
        self.filter(operand, guard.filter().to_string());
    }

    /// Parentheses only where the filter would take a part of the operand: the engine bounds how deep they may be.
    fn filter(&mut self, operand: &Expr, filter: String) {
        let (open, close) = if is_one(operand) { ("", "") } else { ("(", ")") };
        self.insert_around(operand, open, format!("{close}|{filter}"));
    }

    fn enclose(&mut self, operand: &Expr) {
        self.insert_around(operand, "(", ")".to_string());
    }

    fn insert_around(&mut self, operand: &Expr, open: &'static str, close: String) {
        let subject = range_of(self.text, operand);
        let opened = (!open.is_empty()).then_some((subject.start, Cow::from(open)));
        for (offset, text) in opened.into_iter().chain([(subject.end, close.into())]) {
            self.insertions.push(Insertion { offset, guarded: 0, text, subject: subject.clone() });
        }
    }

    fn note(&mut self, kind: Kind, name: &str, range: Range<usize>) {
        self.uses.push(Use { kind, name: name.to_string(), range });
    }

    fn refuse(&mut self, what: &'static str, why: &'static str, range: Range<usize>) {
        self.note(Kind::Refused(what, why), "", range);
    }
}

fn guards_of(operation: BinOpKind) -> (Option<Guard>, Option<Guard>) {
    match operation {
        BinOpKind::ScAnd | BinOpKind::ScOr => (None, None),
        BinOpKind::In => (Some(Guard::Operand), Some(Guard::Container)),
        BinOpKind::Concat => (Some(Guard::Text), Some(Guard::Text)),
        BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => {
            (Some(Guard::Left), Some(Guard::Right))
        }
        _ => (Some(Guard::Operand), Some(Guard::Operand)),
    }
}

/// Whether an operand is what this guard wants, whatever it is computed from: what needs no guard needs no parentheses, so
/// that chains of operators stay flat.
fn is_certain(operand: &Expr, guard: Guard) -> bool {
    match operand {
        Expr::Const(constant) => match guard {
            Guard::Items | Guard::Left | Guard::Right => false,
            Guard::Text => constant.value.kind() == ValueKind::String,
            _ => true,
        },
        Expr::Test(_) | Expr::Compare(_) | Expr::Slice(_) | Expr::UnaryOp(_) => guard == Guard::Operand,
        Expr::BinOp(operation) => match operation.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => false,
            BinOpKind::Concat => matches!(guard, Guard::Operand | Guard::Text),
            _ => guard == Guard::Operand,
        },
        _ => false,
    }
}

/// Whether a filter that is written behind the expression takes the whole of it.
fn is_one(expression: &Expr) -> bool {
    let loose = matches!(
        expression,
        Expr::UnaryOp(_) | Expr::BinOp(_) | Expr::Compare(_) | Expr::IfExpr(_) | Expr::Tuple(_)
    );
    !loose
}
