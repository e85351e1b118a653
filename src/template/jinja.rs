//! Jinja's own filters, tests and functions, with our rules for what they are given.
//!
//! The environment starts empty: what is not listed here or in `functions` does not exist. `safe`, `escape` and
//! `autoescape` have no meaning where values are data; `debug` and `pprint` would show secrets.

use minijinja::functions::Function;
use minijinja::value::{
    FunctionArgs, FunctionResult, Kwargs, ObjectRepr, Rest, Value, ValueKind, ValueOrKwargs, from_args,
};
use minijinja::{Error, ErrorKind, State, filters, functions, tests};

use crate::problem::nearest;
use crate::template::data::{Data, count};
use crate::template::family::Family;
use crate::template::fault::{Fault, Subject};
use crate::template::registry::{Registry, settled, values};
use crate::template::value::{is_absent, is_macro, kind, present, to_text};

/// Adds what Jinja itself brings.
pub(in crate::template) fn install(registry: &mut Registry) {
    install_text_filters(registry);
    install_list_filters(registry);
    install_other_filters(registry);
    install_tests(registry);
    registry.function("range", range);
    registry.function("dict", functions::dict);
    registry.function("namespace", functions::namespace);
    registry.environment.set_unknown_method_callback(method);
}

/// What other template languages call otherwise, or need and we do not.
const ELSEWHERE: &[(&str, &str)] = &[
    ("safe", "leave it out: values are data, nothing is escaped"),
    ("escape", "leave it out: values are data, nothing needs it"),
    ("e", "leave it out: values are data, nothing needs it"),
    ("quote", "leave it out, or write the quotes around the expression: `\"{{ … }}\"`"),
    ("squote", "leave it out, or write the quotes around the expression: `\"{{ … }}\"`"),
    ("nindent", "leave it out: a map drops in whole, `key: {{ map }}`"),
    ("toyaml", "leave it out: a map drops in whole, `key: {{ map }}`; for text there is `to_yaml`"),
    ("toYaml", "leave it out: a map drops in whole, `key: {{ map }}`; for text there is `to_yaml`"),
    ("to_nice_yaml", "leave it out: a map drops in whole, `key: {{ map }}`; for text there is `to_yaml`"),
    ("tojson", "did you mean `to_json`?"),
    ("toJson", "did you mean `to_json`?"),
    ("b64enc", "did you mean `b64encode`?"),
    ("b64dec", "did you mean `b64decode`?"),
    ("sha256sum", "did you mean `sha256`?"),
    ("trunc", "write `text[:63]`, or `dns_name(…)` for names"),
    ("combine", "`map | chain({…})` makes one map of several, in which the last one wins"),
    ("merge", "`map | chain({…})` makes one map of several, in which the last one wins"),
    ("mergeOverwrite", "`map | chain({…})` makes one map of several, in which the last one wins"),
    ("flatten", "`list | chain(other)` makes one list of several"),
    ("union", "`list | chain(other) | unique` makes one list of several"),
    ("regex_replace", "there are no regular expressions; `| replace(\"from\", \"to\")` takes a text"),
    ("regex_search", "there are no regular expressions; `\"part\" in text` looks for a text"),
    ("regexReplaceAll", "there are no regular expressions; `| replace(\"from\", \"to\")` takes a text"),
    ("regexMatch", "there are no regular expressions; `\"part\" in text` looks for a text"),
    ("ternary", "Jinja writes `a if condition else b`"),
    ("coalesce", "Jinja writes `a or b`, or `a | default(b)`"),
    ("hasKey", "Jinja writes `\"key\" in map`"),
    ("has", "Jinja writes `item in list`"),
    ("contains", "Jinja writes `\"part\" in text`"),
    ("hasPrefix", "Jinja writes `text.startswith(\"…\")`"),
    ("hasSuffix", "Jinja writes `text.endswith(\"…\")`"),
    ("cat", "`~` joins values as text"),
    ("omit", "leave the line out: `{% if … %}`, the line, `{% endif %}`"),
    ("mandatory", "leave it out: what is absent is refused"),
    ("urlencode", "no filter does that; `| replace(\" \", \"%20\")` replaces one character"),
    ("fromJson", "did you mean `from_json`?"),
    ("fromYaml", "did you mean `from_yaml`?"),
    ("randAlphaNum", "did you mean `random_string(…)`? it is another at each render"),
    ("pprint", "there is `to_json`"),
    ("debug", "there is `to_json`"),
];

/// How text is filled in.
pub(in crate::template) const FORMAT: &str =
    "`~` joins values as text, and `\"%s:%s\" | format(a, b)` fills them in";

/// The fault of an unknown filter, with what to write instead where that is known.
pub(in crate::template) fn elsewhere(name: &str, fault: Fault) -> Fault {
    match ELSEWHERE.iter().find(|(theirs, _)| *theirs == name) {
        Some((_, ours)) => fault.hint(*ours),
        None => fault,
    }
}

/// What the value before a filter must be.
#[derive(Clone, Copy)]
enum Operand {
    /// Numbers and booleans are taken as text.
    Text,
    /// Text that stays the author's own if it was: only whitespace is changed.
    Whitespace,
    /// A list, or the keys of a map.
    List,
    Any,
}

fn install_text_filters(registry: &mut Registry) {
    add(registry, "lower", Operand::Text, filters::lower);
    add(registry, "upper", Operand::Text, filters::upper);
    add(registry, "title", Operand::Text, filters::title);
    add(registry, "capitalize", Operand::Text, filters::capitalize);
    add(registry, "replace", Operand::Text, filters::replace);
    add(registry, "split", Operand::Text, filters::split);
    add(registry, "lines", Operand::Text, filters::lines);
    add(registry, "format", Operand::Text, format);
    add(registry, "trim", Operand::Whitespace, filters::trim);
    add(registry, "indent", Operand::Whitespace, indent);
}

fn install_list_filters(registry: &mut Registry) {
    add(registry, "join", Operand::List, join);
    add(registry, "dictsort", Operand::List, filters::dictsort);
    add(registry, "items", Operand::List, filters::items);
    add(registry, "min", Operand::List, filters::min);
    add(registry, "max", Operand::List, filters::max);
    add(registry, "sort", Operand::List, filters::sort);
    add(registry, "list", Operand::List, filters::list);
    add(registry, "batch", Operand::List, filters::batch);
    add(registry, "slice", Operand::List, filters::slice);
    add(registry, "sum", Operand::List, filters::sum);
    add(registry, "select", Operand::List, filters::select);
    add(registry, "reject", Operand::List, filters::reject);
    add(registry, "selectattr", Operand::List, filters::selectattr);
    add(registry, "rejectattr", Operand::List, filters::rejectattr);
    add(registry, "map", Operand::List, map);
    add(registry, "groupby", Operand::List, filters::groupby);
    add(registry, "unique", Operand::List, filters::unique);
    add(registry, "chain", Operand::List, chain);
    add(registry, "zip", Operand::List, filters::zip);
}

fn install_other_filters(registry: &mut Registry) {
    for name in ["default", "d"] {
        registry.ungated_filter(name, default);
    }
    for name in ["length", "count"] {
        add(registry, name, Operand::Any, filters::length);
    }
    add(registry, "first", Operand::Any, filters::first);
    add(registry, "last", Operand::Any, filters::last);
    add(registry, "reverse", Operand::Any, filters::reverse);
    add(registry, "round", Operand::Any, filters::round);
    add(registry, "abs", Operand::Any, filters::abs);
    add(registry, "int", Operand::Any, filters::int);
    add(registry, "float", Operand::Any, filters::float);
    add(registry, "attr", Operand::Any, filters::attr);
    add(registry, "bool", Operand::Any, filters::bool);
    add(registry, "string", Operand::Any, string);
}

fn install_tests(registry: &mut Registry) {
    registry.ungated_test("defined", |value: &Value| !is_absent(value));
    registry.ungated_test("undefined", |value: &Value| is_absent(value));
    registry.test("none", tests::is_none);
    registry.test("boolean", tests::is_boolean);
    registry.test("odd", tests::is_odd);
    registry.test("even", tests::is_even);
    registry.test("divisibleby", tests::is_divisibleby);
    registry.test("number", tests::is_number);
    registry.test("float", tests::is_float);
    registry.test("string", tests::is_string);
    registry.test("sequence", tests::is_sequence);
    registry.test("iterable", tests::is_iterable);
    registry.test("mapping", tests::is_mapping);
    registry.test("startingwith", tests::is_startingwith);
    registry.test("endingwith", tests::is_endingwith);
    registry.test("lower", tests::is_lower);
    registry.test("upper", tests::is_upper);
    registry.test("sameas", tests::is_sameas);
    registry.test("true", tests::is_true);
    registry.test("false", tests::is_false);
    for name in ["integer", "int"] {
        registry.test(name, tests::is_integer);
    }
    for name in ["eq", "equalto", "=="] {
        registry.test(name, tests::is_eq);
    }
    for name in ["ne", "!="] {
        registry.test(name, tests::is_ne);
    }
    for name in ["lt", "lessthan", "<"] {
        registry.test(name, tests::is_lt);
    }
    for name in ["le", "<="] {
        registry.test(name, tests::is_le);
    }
    for name in ["gt", "greaterthan", ">"] {
        registry.test(name, tests::is_gt);
    }
    for name in ["ge", ">="] {
        registry.test(name, tests::is_ge);
    }
    registry.test("in", |state: &State, value: &Value, other: &Value| {
        tests::is_in(state, value, &container(other)?)
    });
}

fn add<F, Rv, Args>(registry: &mut Registry, name: &'static str, operand: Operand, filter: F)
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let filter = Value::from_function(filter);
    registry.ungated_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
        let mut args = values(args);
        let own = args.first().filter(|first| operand.keeps_captures() && first.is_safe()).cloned();
        if own.is_some() {
            args[0] = Value::from("");
        }
        let mut args = settled(state, &args)?.into_owned();
        match (own, args.first_mut()) {
            (Some(own), Some(first)) => *first = own,
            (None, Some(first)) => *first = operand.of(name, first)?,
            (_, None) => {}
        }
        let items = args.first().and_then(Value::len).unwrap_or(0);
        state.consume_fuel(items as u64 / 2)?;
        filter.call(state, &args).map_err(|error| rephrase(name, error, &args))
    });
}

impl Operand {
    fn keeps_captures(self) -> bool {
        matches!(self, Operand::Whitespace)
    }

    fn of(self, name: &str, value: &Value) -> Result<Value, Fault> {
        match (self, value.kind()) {
            (Operand::Any, _) => Ok(value.clone()),
            (Operand::List, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) if !is_macro(value) => {
                Ok(value.clone())
            }
            (Operand::List, _) => Err(unfit(name, value).expected("a list or a map")),
            (Operand::Text | Operand::Whitespace, ValueKind::String) => Ok(value.clone()),
            (Operand::Text | Operand::Whitespace, ValueKind::Number | ValueKind::Bool) => {
                to_text(value).map(Value::from)
            }
            (Operand::Text | Operand::Whitespace, _) => Err(unfit(name, value).expected("text")),
        }
    }
}

fn unfit(name: &str, value: &Value) -> Fault {
    let fault =
        Fault::new(format!("`{name}` cannot be used on {}", kind(value))).about_its(Subject::Argument(0));
    match value.kind() {
        ValueKind::None => fault.hint("where it may be null, write `| default(…, true)` first"),
        _ => fault,
    }
}

/// An engine's error about a filter in the author's words. Its detail may hold values, so it is not shown.
fn rephrase(name: &str, error: Error, args: &[Value]) -> Error {
    if Fault::inside(&error).is_some() {
        return error;
    }
    match error.kind() {
        ErrorKind::OutOfFuel | ErrorKind::UndefinedError => error,
        ErrorKind::MissingArgument => Fault::new(format!("`{name}` needs another argument")).into(),
        ErrorKind::TooManyArguments => too_many(name, &error, args).into(),
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest => unknown_by_name(name, &error).into(),
        _ => {
            let found: Vec<_> = args.iter().filter(|value| !value.is_kwargs()).map(kind).collect();
            let fault = Fault::new(format!("`{name}` cannot work on this")).found(found.join(", "));
            match name {
                "int" | "float" => {
                    fault.hint(format!("`| {name}(default=0)` says what it is where it is no number")).into()
                }
                _ => fault.into(),
            }
        }
    }
}

fn too_many(name: &str, error: &Error, args: &[Value]) -> Fault {
    match error.detail().and_then(|detail| detail.split('\'').nth(1)) {
        Some(argument) => Fault::new(format!("`{name}` has no argument `{argument}`")),
        None => Fault::new(format!("`{name}` does not take these arguments"))
            .found(count(args.len().saturating_sub(1), "argument")),
    }
}

/// `map("nmae")`, `select("nmae")`: the name is a value here, which only the render knows.
fn unknown_by_name(name: &str, error: &Error) -> Fault {
    let what = if error.kind() == ErrorKind::UnknownFilter { "filter" } else { "test" };
    Fault::new(format!("`{name}` is given the name of a {what} that does not exist"))
        .about_its(Subject::Argument(1))
}

/// `value | default(other, false)`: other where value is absent; with true, also where it is null, empty, 0 or false.
fn default(state: &mut State, value: Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = values(args);
    let (_, boolean, named): (Option<Value>, Option<bool>, Kwargs) = from_args(&args).map_err(|_| {
        Fault::new("`default` cannot read its arguments").expected("another value, then true or false")
    })?;
    // A null that was given is a value as any other.
    let other = match args.first().filter(|first| !first.is_kwargs()) {
        Some(other) => other.clone(),
        None if named.has("default_value") => named.get("default_value")?,
        None => Value::from(""),
    };
    let boolean = boolean.or(named.get("boolean")?).unwrap_or(false);
    named.assert_all_used()?;
    state.consume_fuel(1)?;
    Ok(if is_absent(&value) || (boolean && !value.is_true()) { other } else { value })
}

fn string(value: &Value) -> Result<String, Error> {
    Ok(to_text(value)?)
}

fn join(state: &mut State, items: &Value, separator: Option<String>, named: Kwargs) -> Result<Value, Error> {
    let separator = separator.or(named.get("d")?).unwrap_or_default();
    let attribute: Option<String> = named.get("attribute")?;
    named.assert_all_used()?;
    let mut joined = String::new();
    for (index, item) in items.try_iter()?.checked().enumerate() {
        let item = match &attribute {
            Some(attribute) => item?.get_attr(attribute)?,
            None => item?,
        };
        present(&item)?;
        let text = to_text(&item).map_err(|fault| {
            Fault::new(format!("`join` cannot join {}", kind(&item))).hint(fault.hint.unwrap_or_default())
        })?;
        let separator = if index > 0 { separator.as_str() } else { "" };
        state.consume_fuel(1 + (separator.len() + text.len()) as u64 / 64)?;
        joined.push_str(separator);
        joined.push_str(&text);
    }
    Ok(Value::from(joined))
}

/// Jinja's `indent`, paid for before it is made.
fn indent(state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = values(args);
    let named = args.last().filter(|last| last.is_kwargs());
    let width = match args.get(1).filter(|second| !second.is_kwargs()) {
        Some(width) => width.as_usize(),
        None => named.and_then(|named| named.get_attr("width").ok()?.as_usize()),
    };
    let lines = args.first().and_then(Value::as_str).map_or(0, |text| text.lines().count());
    state.consume_fuel(lines.saturating_mul(width.unwrap_or(4)) as u64 / 64)?;
    Value::from_function(filters::indent).call(state, &args)
}

/// Jinja's `format`, of what has a text: the engine would write true, false and null as Python does. It is paid for before
/// it is made, since a long text may be asked for many times over.
fn format(state: &mut State, text: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut longest = 0;
    let mut written = |value: &Value| -> Result<Value, Error> {
        present(value)?;
        let value = match value.kind() {
            ValueKind::Number | ValueKind::String => value.clone(),
            _ => Value::from(to_text(value)?),
        };
        longest = value.as_str().map_or(0, str::len).max(longest);
        Ok(value)
    };
    let mut all = vec![text.clone()];
    for value in values(args) {
        let named = value.as_object().filter(|_| value.is_kwargs()).and_then(|named| named.try_iter_pairs());
        all.push(match named {
            Some(pairs) => {
                let pairs = pairs.map(|(name, value)| Ok((name, written(&value)?)));
                Value::from_pairs(pairs.collect::<Result<Vec<_>, Error>>()?)
            }
            None => written(&value)?,
        });
    }
    let places = text.as_str().map_or(0, |text| text.matches('%').count());
    state.consume_fuel(places.saturating_mul(longest) as u64 / 64)?;
    Value::from_function(filters::format).call(state, &all)
}

/// Jinja's `map`; with `default=`, that takes the place of absent attributes too.
fn map(state: &mut State, items: Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = values(args);
    let other =
        args.last().filter(|last| last.is_kwargs()).map(|named| named.get_attr("default")).transpose()?;
    let mut all = vec![items];
    all.extend(args);
    let mapped = Value::from_function(filters::map).call(state, &all)?;
    match other.filter(|other| !other.is_undefined()) {
        None => Ok(mapped),
        Some(other) => {
            let items = mapped.try_iter()?.checked();
            items
                .map(|item| Ok(item.ok().filter(|item| !is_absent(item)).unwrap_or_else(|| other.clone())))
                .collect()
        }
    }
}

/// Several lists as one, or several maps as one in which the last one wins.
fn chain(state: &mut State, first: Value, others: Rest<Value>) -> Result<Value, Error> {
    let all = || std::iter::once(&first).chain(&others.0);
    let length: usize = all().filter_map(Value::len).sum();
    state.consume_fuel(length as u64)?;
    if all().all(|value| value.kind() == ValueKind::Map) {
        let pairs = all().filter_map(|map| map.as_object()?.try_iter_pairs()).flatten();
        return Ok(Value::from_pairs(pairs));
    }
    if let Some(odd) = all().find(|value| !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)) {
        return Err(unfit("chain", odd).expected("lists only, or maps only").into());
    }
    let mut items = Vec::new();
    for value in all() {
        for item in value.try_iter()?.checked() {
            items.push(item?);
        }
    }
    Ok(Value::from(items))
}

/// The longest list that `range` makes.
const LONGEST_RANGE: i128 = 100_000;

fn range(args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = values(args);
    let (first, end, step): (isize, Option<isize>, Option<isize>) = from_args(&args)
        .map_err(|_| Fault::new("`range` cannot read its arguments").expected("one to three integers"))?;
    let (start, end) = end.map_or((0, first), |end| (first, end));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Fault::new("`range` cannot go on in steps of 0").into());
    }
    let length = (end as i128 - start as i128) / step as i128;
    if length > LONGEST_RANGE {
        return Err(Fault::new("`range` makes too long a list")
            .expected(format!("at most {LONGEST_RANGE} numbers"))
            .into());
    }
    functions::range(start, Some(end), Some(step))
}

/// What `in` looks into: the keys of a map, the items of a list, a text.
pub(in crate::template) fn container(value: &Value) -> Result<Value, Fault> {
    let data = value.downcast_object_ref::<Data>();
    if let Some(data) = data.filter(|_| value.kind() == ValueKind::Map) {
        return Ok(data.keys().into_iter().map(Value::from).collect());
    }
    if value.downcast_object_ref::<Family>().is_some() {
        return Ok(value.try_iter().into_iter().flatten().collect());
    }
    match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable | ValueKind::String => Ok(value.clone()),
        _ => {
            Err(Fault::new(format!("`in` cannot look into {}", kind(value)))
                .expected("a list, a map or text"))
        }
    }
}

/// Python's methods that templates are used to.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let receiver = settled(state, std::slice::from_ref(value))?.into_owned().remove(0);
    let args = settled(state, args)?;
    let with = |first: &str| {
        let mut all = vec![receiver.clone()];
        all.extend(args.iter().cloned());
        (first.to_string(), all)
    };
    let call = match (receiver.kind(), name) {
        (ValueKind::Map, "items" | "keys" | "values") if args.is_empty() => return entries(&receiver, name),
        (ValueKind::Map, "get") => return get(&receiver, &args),
        (ValueKind::String, "upper" | "lower" | "title" | "capitalize" | "split" | "replace") => with(name),
        (ValueKind::String, "strip") => with("trim"),
        (ValueKind::String, "splitlines") => with("lines"),
        (ValueKind::String, "startswith") => {
            return ends(&receiver, &args, name, |text, part| text.starts_with(part));
        }
        (ValueKind::String, "endswith") => {
            return ends(&receiver, &args, name, |text, part| text.ends_with(part));
        }
        _ => return Err(unknown_method(&receiver, name)),
    };
    state.apply_filter(&call.0, &call.1)
}

const MAP_METHODS: &[&str] = &["get", "items", "keys", "values"];
const TEXT_METHODS: &[&str] = &[
    "capitalize",
    "endswith",
    "lower",
    "replace",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
];

/// A stored value of that name is called instead, where there is one; the engine looks for it after this error.
fn unknown_method(receiver: &Value, name: &str) -> Error {
    let callable = receiver.as_object().filter(|object| object.repr() == ObjectRepr::Map);
    let stored = callable.and_then(|object| object.get_value_by_str(name)).filter(|value| !is_absent(value));
    if stored.is_some() {
        return Error::from(ErrorKind::UnknownMethod);
    }
    let methods = match receiver.kind() {
        ValueKind::Map => MAP_METHODS,
        ValueKind::String => TEXT_METHODS,
        _ => &[],
    };
    let fault = Fault::new(format!("{} has no method `{name}`", kind(receiver)));
    let fault = fault.about_its(Subject::Method(name.to_string()));
    match (name, nearest(name, methods.iter().copied())) {
        ("format", _) => fault.hint(FORMAT).into(),
        (_, Some(near)) => fault.hint(format!("did you mean `{near}`?")).into(),
        ("append" | "extend" | "insert" | "pop" | "remove", _) => {
            fault.hint("a list does not change; make another one: `list + [item]`").into()
        }
        ("update" | "setdefault" | "popitem", _) => {
            fault.hint("a map does not change; make another one: `map | chain({…})`").into()
        }
        (_, None) if methods.is_empty() => fault.hint("use a filter: `value | name`").into(),
        (_, None) => fault
            .expected(methods.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
            .into(),
    }
}

fn entries(map: &Value, name: &str) -> Result<Value, Error> {
    let pairs = map.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten();
    Ok(match name {
        "keys" => pairs.map(|(key, _)| key).collect(),
        "values" => pairs.map(|(_, value)| value).collect(),
        _ => pairs.map(|(key, value)| Value::from(vec![key, value])).collect(),
    })
}

/// `map.get(key, other=null)`.
fn get(map: &Value, args: &[Value]) -> Result<Value, Error> {
    let (key, other): (Value, Option<Value>) = from_args(args)
        .map_err(|_| Fault::new("`get` cannot read its arguments").expected("a key and another value"))?;
    let found = map.get_item(&key)?;
    Ok(if is_absent(&found) { other.unwrap_or_else(|| Value::from(())) } else { found })
}

fn ends(text: &Value, args: &[Value], name: &str, matches: fn(&str, &str) -> bool) -> Result<Value, Error> {
    let (part,): (&str,) = from_args(args)
        .map_err(|_| Fault::new(format!("`{name}` cannot read its argument")).expected("text"))?;
    Ok(Value::from(matches(text.as_str().unwrap_or_default(), part)))
}
