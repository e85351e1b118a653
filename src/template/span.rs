//! Which part of a source an expression is. The engine's spans end right, but many begin late.

use std::ops::Range;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOpKind, Expr};

use crate::problem::floor;

pub(in crate::template) fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// The range, made to fit the text: the engine's ends beyond it where a text ends too early.
pub(in crate::template) fn within(text: &str, range: Range<usize>) -> Range<usize> {
    let start = floor(text, range.start);
    start..floor(text, range.end).max(start)
}

/// A filter's span begins at its name.
pub(in crate::template) fn name_in(range: Range<usize>, name: &str) -> Range<usize> {
    range.start..(range.start + name.len()).min(range.end)
}

/// The range of an expression of `text`: the first operand tells best where it begins. Parentheses around the whole are
/// left out.
pub(in crate::template) fn range_of(text: &str, expression: &Expr) -> Range<usize> {
    let own = range(expression.span());
    let first = match expression {
        Expr::Slice(slice) => range_of(text, &slice.expr),
        Expr::BinOp(operation) => range_of(text, &operation.left),
        Expr::Compare(comparison) => range_of(text, &comparison.expr),
        Expr::IfExpr(choice) => range_of(text, &choice.true_expr),
        Expr::Filter(filter) => filter.expr.as_ref().map_or(own.clone(), |operand| range_of(text, operand)),
        Expr::Test(test) => range_of(text, &test.expr),
        Expr::GetAttr(lookup) => range_of(text, &lookup.expr),
        Expr::GetItem(lookup) => range_of(text, &lookup.expr),
        Expr::Call(call) => range_of(text, &call.expr),
        Expr::UnaryOp(operation) if is_inside(text, &own, &operation.expr) => range_of(text, &operation.expr),
        // The second item's, where there are no parentheses.
        Expr::Tuple(tuple) => match tuple.items.first().map(|first| range_of(text, first)) {
            Some(first) if first.start < own.start => first,
            _ => own.clone(),
        },
        Expr::UnaryOp(_) | Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Map(_) => own.clone(),
    };
    first.start..own.end.max(first.end)
}

/// Whether a `not` stands inside of what it negates: `a not in b`, `a is not b`. The engine gives a negated `in` the span of
/// the whole, and that of `not a in b` too; a negated test has the span of the test.
fn is_inside(text: &str, own: &Range<usize>, negated: &Expr) -> bool {
    match negated {
        Expr::Test(test) => range(test.span()) == *own,
        Expr::BinOp(operation) if matches!(operation.op, BinOpKind::In) => {
            let between = range_of(text, &operation.left).end..range_of(text, &operation.right).start;
            let between = text.get(between).unwrap_or_default();
            between.trim_start_matches(|c: char| c == ')' || c.is_whitespace()).starts_with("not")
        }
        _ => false,
    }
}
