//! Questions out of the GraphQL schema: each field of `Query` with all that it tells, down to the last scalar.
//!
//! Owns: reading the schema's own language as far as it is used, and the values of arguments. A field with an argument
//! that is not known here stops the test with a text that says what to add.

use crate::parties::Parties;
use std::collections::BTreeMap;

/// How deep a question goes; the portal allows no more.
const DEPTH_MAX: usize = 7;

/// A field: its name, its arguments with their types, and the type of what it tells.
struct Field {
    name: String,
    arguments: Vec<(String, String)>,
    of: String,
}

/// Each type's fields.
type Types = BTreeMap<String, Vec<Field>>;

/// One question for each field of `Query`.
pub(crate) fn all(sdl: &str, parties: &Parties) -> Vec<String> {
    let types = types(sdl);
    for other in ["Mutation", "Subscription"] {
        assert!(
            !types.contains_key(other),
            "the schema has a `{other}` now: ask each of its fields too, in tests/tests/two_tenants/questions.rs"
        );
    }
    let ask = |field: &Field| {
        let arguments: Vec<String> =
            field.arguments.iter().filter_map(|of| argument(&field.name, of, parties)).collect();
        let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
        format!("{{ {}{arguments} {} }}", field.name, selection(&types, &field.of, DEPTH_MAX))
    };
    types["Query"].iter().map(ask).collect()
}

/// An argument with the id of the other tenant's thing, or with what lets the most through; none where it is left out.
fn argument(field: &str, (name, of): &(String, String), parties: &Parties) -> Option<String> {
    let value = match (field, name.as_str()) {
        ("statement", "id") => format!("{:?}", parties.ids["sta"]),
        (_, "all") => "true".into(),
        (_, "first") => "100".into(),
        (_, "after") => return None,
        _ => panic!(
            "say in `argument` of tests/tests/two_tenants/questions.rs what `{name}: {of}` of `{field}` is, and make such a \
             thing of Aurora's in parties.rs"
        ),
    };
    Some(format!("{name}: {value}"))
}

/// All fields of a type, as far as they ask for nothing; nothing for a scalar.
fn selection(types: &Types, of: &str, depth: usize) -> String {
    let Some(fields) = types.get(of) else { return String::new() };
    let told = fields.iter().filter(|field| field.arguments.is_empty()).filter_map(|field| {
        let inner = selection(types, &field.of, depth.checked_sub(1)?);
        let is_object = types.contains_key(&field.of);
        (!is_object || !inner.is_empty()).then(|| format!("{} {inner}", field.name))
    });
    let told: Vec<String> = if depth == 0 { vec![] } else { told.collect() };
    if told.is_empty() { String::new() } else { format!("{{ {} }}", told.join(" ")) }
}

/// The object types of a schema.
fn types(sdl: &str) -> Types {
    let (mut types, mut of, mut in_text) = (Types::new(), None, false);
    for line in sdl.lines().map(str::trim) {
        if line.starts_with("\"\"\"") {
            in_text = !in_text;
        } else if in_text || line.is_empty() {
        } else if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.split([' ', '{']).next()) {
            types.insert(name.to_owned(), vec![]);
            of = Some(name.to_owned());
        } else if line == "}" {
            of = None;
        } else if let Some(name) = &of {
            types.get_mut(name).unwrap().push(field(line));
        }
    }
    types
}

/// A line such as `jobs(all: Boolean! = false, first: Int): JobConnection!`.
fn field(line: &str) -> Field {
    let (head, of) = line.rsplit_once(':').unwrap_or_else(|| panic!("`{line}` is not a field"));
    let bare = |text: &str| text.trim().trim_matches(['[', ']', '!']).to_owned();
    let (name, arguments) = head.split_once('(').unwrap_or((head, ""));
    let argument = |text: &str| text.split_once(':').map(|(name, of)| (name.trim().to_owned(), of.trim().to_owned()));
    let arguments = arguments.trim_end_matches(')').split(',').filter_map(argument).collect();
    Field { name: name.trim().to_owned(), arguments, of: bare(of.split('@').next().unwrap_or(of)) }
}

#[test]
fn a_schema_is_read_as_it_is_written() {
    let sdl = "\"\"\"\nA type of {things}\n\"\"\"\ntype Query {\n\tjobs(all: Boolean! = false, first: Int): [Job!]!\n}\n\
               type Job {\n\tid: ID!\n\tnext: Job\n}\nenum Word {\n\tA\n}";
    let types = types(sdl);
    assert_eq!(types.keys().collect::<Vec<_>>(), ["Job", "Query"]);
    assert_eq!((types["Query"][0].arguments.len(), types["Query"][0].of.as_str()), (2, "Job"));
    assert_eq!(selection(&types, "Job", 2), "{ id  next { id  } }");
    assert_eq!(selection(&types, "Int", 2), "");
}
