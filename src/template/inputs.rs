//! What the expressions of a file are computed from, read off its text: for a person who asks where a field comes from.
//!
//! Names that the file sets are followed back to what they were set to, and a macro's arguments to what its file's calls give
//! it. What another file sets or gives is not followed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use minijinja::machinery::ast::{Call, CallArg, Expr, Macro, Stmt};
use minijinja::machinery::{Span, parse};

use crate::template::library::syntax;
use crate::template::span::range_of;

/// One file, as far as it tells where values come from.
#[derive(Debug, Default)]
pub(in crate::template) struct Inputs {
    /// What each name of this file was set to, each time.
    set: BTreeMap<String, Vec<Set>>,
    /// The expressions that are written, by their range.
    written: Vec<(Range<usize>, Vec<LookUp>)>,
    /// What stands inside of an `if` or a `for`, and in which.
    inside: Vec<(Range<usize>, String)>,
}

/// A look-up as it is written: `parent.spec.image` begins with the name `parent`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LookUp {
    name: String,
    rest: String,
}

#[derive(Debug)]
enum Set {
    /// To a look-up alone, so that what is looked up in the name is looked up in that.
    To(LookUp),
    /// To something that is computed of these.
    Of(Vec<LookUp>),
}

impl Inputs {
    /// Reads a file that compiles.
    pub(in crate::template) fn of(name: &str, text: &str) -> Inputs {
        let mut reading =
            Reading { text, inputs: Inputs::default(), macros: BTreeMap::new(), given: RefCell::default() };
        if let Ok(tree) = parse(text, name, syntax()) {
            reading.statement(&tree);
        }
        for (argument, set) in reading.given.take() {
            reading.inputs.set.entry(argument).or_default().push(set);
        }
        reading.inputs
    }

    /// What the expression at this range is computed from, without repetition.
    pub(in crate::template) fn at(&self, range: &Range<usize>) -> Vec<String> {
        let mut found = Vec::new();
        for (written, look_ups) in &self.written {
            if written.start <= range.start && range.end <= written.end {
                look_ups.iter().for_each(|look_up| self.follow(look_up, &mut BTreeSet::new(), &mut found));
            }
        }
        let mut seen = BTreeSet::new();
        found.retain(|input| seen.insert(input.clone()));
        found
    }

    /// The conditions and loops that the text at this offset is in, outermost first.
    pub(in crate::template) fn conditions(&self, offset: usize) -> Vec<String> {
        self.inside
            .iter()
            .filter(|(range, _)| range.contains(&offset))
            .map(|(_, text)| text.clone())
            .collect()
    }

    fn follow(&self, look_up: &LookUp, way: &mut BTreeSet<String>, found: &mut Vec<String>) {
        let set = self.set.get(&look_up.name).map_or(&[][..], Vec::as_slice);
        if set.is_empty() {
            found.push(format!("{}{}", look_up.name, look_up.rest));
            return;
        }
        if !way.insert(look_up.name.clone()) {
            return;
        }
        for set in set {
            match set {
                Set::To(other) => {
                    let rest = format!("{}{}", other.rest, look_up.rest);
                    self.follow(&LookUp { name: other.name.clone(), rest }, way, found);
                }
                Set::Of(others) => others.iter().for_each(|other| self.follow(other, way, found)),
            }
        }
        way.remove(&look_up.name);
    }
}

struct Reading<'t> {
    text: &'t str,
    inputs: Inputs,
    /// The arguments of each macro that was declared so far.
    macros: BTreeMap<String, Vec<String>>,
    /// What calls of macros give their arguments.
    given: RefCell<Vec<(String, Set)>>,
}

impl Reading<'_> {
    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => {
                let look_ups = self.look_ups(&emit.expr);
                self.inputs.written.push((range_of(self.text, &emit.expr), look_ups));
            }
            Stmt::ForLoop(each) => {
                self.set_each(&each.target, &each.iter);
                let said = format!("for {} in {}", self.text(&each.target), self.text(&each.iter));
                self.inside(&each.body, &said);
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                let expression = self.text(&condition.expr);
                self.inside(&condition.true_body, &format!("if {expression}"));
                self.inside(&condition.false_body, &format!("if not {expression}"));
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                with.assignments.iter().for_each(|(target, value)| self.set(target, value));
                self.statements(&with.body);
            }
            Stmt::Set(set) => self.set(&set.target, &set.expr),
            Stmt::SetBlock(set) => {
                let before = self.inputs.written.len();
                self.statements(&set.body);
                let written = self.inputs.written[before..].iter().flat_map(|(_, look_ups)| look_ups);
                let of = Set::Of(written.cloned().collect());
                self.note(&set.target, of);
            }
            Stmt::FilterBlock(block) => self.statements(&block.body),
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Macro(declared) => self.declaration(declared),
            Stmt::CallBlock(block) => self.declaration(&block.macro_decl),
            _ => {}
        }
    }

    fn declaration(&mut self, declared: &Macro) {
        let arguments: Vec<String> = declared.args.iter().filter_map(name).map(str::to_string).collect();
        // Defaults belong to the last ones.
        let defaults = declared.args.iter().rev().zip(declared.defaults.iter().rev());
        defaults.for_each(|(argument, default)| self.set(argument, default));
        self.macros.insert(declared.name.to_string(), arguments);
        self.statements(&declared.body);
    }

    fn set(&mut self, target: &Expr, value: &Expr) {
        let set = self.value(value);
        self.note(target, set);
    }

    fn value(&self, value: &Expr) -> Set {
        match self.look_up(value) {
            Some(look_up) => Set::To(look_up),
            None => Set::Of(self.look_ups(value)),
        }
    }

    /// Notes what a call gives a macro of this file. A name that is given to itself is what it was outside.
    fn give(&self, called: &str, arguments: &[CallArg]) {
        let Some(names) = self.macros.get(called) else { return };
        for (index, argument) in arguments.iter().enumerate() {
            let (name, value) = match argument {
                CallArg::Pos(value) => (names.get(index).map(String::as_str), value),
                CallArg::Kwarg(name, value) => (Some(*name), value),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => continue,
            };
            let Some(name) = name else { continue };
            let set = self.value(value);
            if !matches!(&set, Set::To(look_up) if look_up.name == name) {
                self.given.borrow_mut().push((name.to_string(), set));
            }
        }
    }

    /// A loop sets its names to what the items are.
    fn set_each(&mut self, target: &Expr, items: &Expr) {
        let set = match (target, self.look_up(items)) {
            (Expr::Var(_), Some(LookUp { name, rest })) => {
                Set::To(LookUp { name, rest: format!("{rest}[…]") })
            }
            _ => Set::Of(self.look_ups(items)),
        };
        self.note(target, set);
    }

    fn note(&mut self, target: &Expr, set: Set) {
        let names = match target {
            Expr::Tuple(tuple) => tuple.items.iter().filter_map(name).collect(),
            Expr::List(list) => list.items.iter().filter_map(name).collect(),
            other => name(other).into_iter().collect::<Vec<_>>(),
        };
        let Some((last, others)) = names.split_last() else { return };
        let copy = |set: &Set| match set {
            Set::To(look_up) => Set::To(look_up.clone()),
            Set::Of(look_ups) => Set::Of(look_ups.clone()),
        };
        for name in others {
            self.inputs.set.entry(name.to_string()).or_default().push(copy(&set));
        }
        self.inputs.set.entry(last.to_string()).or_default().push(set);
    }

    fn inside(&mut self, body: &[Stmt], said: &str) {
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            let range = span_of(first).start_offset as usize..span_of(last).end_offset as usize;
            self.inputs.inside.push((range, said.to_string()));
        }
    }

    fn text(&self, expression: &Expr) -> String {
        self.text
            .get(range_of(self.text, expression))
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A name with attributes, items and calls of methods behind it, as it is written.
    fn look_up(&self, expression: &Expr) -> Option<LookUp> {
        let name = base(expression)?;
        let rest = self.text(expression).strip_prefix(name)?.to_string();
        Some(LookUp { name: name.to_string(), rest })
    }

    fn look_ups(&self, expression: &Expr) -> Vec<LookUp> {
        let mut found = Vec::new();
        self.find(expression, &mut found);
        found
    }

    fn find(&self, expression: &Expr, found: &mut Vec<LookUp>) {
        if let Some(look_up) = self.look_up(expression) {
            if look_up.name != "loop" {
                found.push(look_up);
            }
            return;
        }
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => self.find(&slice.expr, found),
            Expr::UnaryOp(operation) => self.find(&operation.expr, found),
            Expr::BinOp(operation) => {
                self.find(&operation.left, found);
                self.find(&operation.right, found);
            }
            Expr::Compare(comparison) => {
                self.find(&comparison.expr, found);
                comparison.ops.iter().for_each(|operation| self.find(&operation.expr, found));
            }
            Expr::IfExpr(choice) => {
                self.find(&choice.true_expr, found);
                choice.false_expr.iter().for_each(|other| self.find(other, found));
                self.find(&choice.test_expr, found);
            }
            Expr::Filter(filter) => {
                filter.expr.iter().for_each(|operand| self.find(operand, found));
                self.find_arguments(&filter.args, found);
            }
            Expr::Test(test) => {
                self.find(&test.expr, found);
                self.find_arguments(&test.args, found);
            }
            Expr::GetAttr(lookup) => self.find(&lookup.expr, found),
            Expr::GetItem(lookup) => self.find(&lookup.expr, found),
            Expr::Call(call) => self.find_call(call, found),
            Expr::List(list) => list.items.iter().for_each(|item| self.find(item, found)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.find(item, found)),
            Expr::Map(map) => map.values.iter().for_each(|value| self.find(value, found)),
        }
    }

    fn find_call(&self, call: &Call, found: &mut Vec<LookUp>) {
        match &call.expr {
            Expr::Var(called) => self.give(called.id, &call.args),
            other => self.find(other, found),
        }
        self.find_arguments(&call.args, found);
    }

    fn find_arguments(&self, arguments: &[CallArg], found: &mut Vec<LookUp>) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => self.find(value, found),
            }
        }
    }
}

/// The name that a look-up begins with; `None` for what is no look-up alone.
fn base<'a>(expression: &Expr<'a>) -> Option<&'a str> {
    match expression {
        Expr::Var(name) => Some(name.id),
        Expr::GetAttr(lookup) => base(&lookup.expr),
        Expr::GetItem(lookup) => base(&lookup.expr),
        Expr::Call(call) => match &call.expr {
            Expr::GetAttr(lookup) => base(&lookup.expr),
            _ => None,
        },
        _ => None,
    }
}

fn span_of(statement: &Stmt) -> Span {
    match statement {
        Stmt::Template(it) => it.span(),
        Stmt::EmitExpr(it) => it.span(),
        Stmt::EmitRaw(it) => it.span(),
        Stmt::ForLoop(it) => it.span(),
        Stmt::IfCond(it) => it.span(),
        Stmt::WithBlock(it) => it.span(),
        Stmt::Set(it) => it.span(),
        Stmt::SetBlock(it) => it.span(),
        Stmt::AutoEscape(it) => it.span(),
        Stmt::FilterBlock(it) => it.span(),
        Stmt::Block(it) => it.span(),
        Stmt::Import(it) => it.span(),
        Stmt::FromImport(it) => it.span(),
        Stmt::Extends(it) => it.span(),
        Stmt::Include(it) => it.span(),
        Stmt::Macro(it) => it.span(),
        Stmt::CallBlock(it) => it.span(),
        Stmt::Continue(it) => it.span(),
        Stmt::Break(it) => it.span(),
        Stmt::Do(it) => it.span(),
    }
}

/// The name that an assignment gives; an attribute's is that of its namespace.
fn name<'a>(target: &Expr<'a>) -> Option<&'a str> {
    base(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expression: &str, inputs: &[&str]) {
        let at = text.find(&format!("{{{{ {expression} }}}}")).expect("the expression is there") + 3;
        assert_eq!(Inputs::of("a", text).at(&(at..at + expression.len())), inputs);
    }

    #[test]
    fn an_expression_is_followed_to_what_it_is_computed_from() {
        check("{{ parent.spec.image }}", "parent.spec.image", &["parent.spec.image"]);
        check("{{ 1 }}", "1", &[]);
        check(
            "{{ dns_name(parent.metadata.name, max=9) ~ now }}",
            "dns_name(parent.metadata.name, max=9) ~ now",
            &["parent.metadata.name", "now"],
        );
        check(
            "{% set spec = parent.spec %}{% set image = 'a:' ~ spec.version %}{{ image }}",
            "image",
            &["parent.spec.version"],
        );
        check(
            "{% set web = children.find('Deployment', name) %}{{ web.status.ready | default(0) }}",
            "web.status.ready | default(0)",
            &["children.find('Deployment', name).status.ready"],
        );
        check(
            "{% for p in parent.spec.ports %}{{ p.name }}{% endfor %}",
            "p.name",
            &["parent.spec.ports[…].name"],
        );
        check(
            "{% for k, v in parent.spec.config | dictsort %}{{ v }}{% endfor %}",
            "v",
            &["parent.spec.config"],
        );
        check(
            "{% macro port(number, name='http') %}{{ number }}{{ name }}{% endmacro %}{{ port(parent.spec.port) }}",
            "number",
            &["parent.spec.port"],
        );
        check(
            "{% set app = parent.metadata.name %}{% macro label(of) %}{{ of ~ '-x' }}{% endmacro %}{{ label(of=app) }}",
            "of ~ '-x'",
            &["parent.metadata.name"],
        );
        check("{% set n = namespace(x='') %}{% set n.x = n.x ~ parent.a %}{{ n.x }}", "n.x", &["parent.a"]);
    }

    #[test]
    fn a_line_knows_the_conditions_it_is_in() {
        let text = "{% if a.b %}1{% elif c %}2{% else %}3{% endif %}";
        let conditions = |sign| Inputs::of("a", text).conditions(text.find(sign).unwrap());
        assert_eq!(conditions("1"), ["if a.b"]);
        assert_eq!(conditions("2"), ["if not a.b", "if c"]);
        assert_eq!(conditions("3"), ["if not a.b", "if not c"]);
    }
}
