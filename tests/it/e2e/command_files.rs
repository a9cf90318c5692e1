//! The files by which a step talks to the runner, read by the runner's rules.

use std::collections::BTreeMap;

/// The entries of an output, environment or state file.
///
/// As the runner does it: a line is `NAME=VALUE`, or, if `<<` comes before any `=`, `NAME<<DELIMITER` and the lines up to one
/// that is DELIMITER alone. Empty lines are passed over. Anything else fails the step.
pub(crate) fn entries(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut entries = BTreeMap::new();
    let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let (equals, heredoc) = (line.find('='), line.find("<<"));
        let (name, value) = match (equals, heredoc) {
            (Some(equals), heredoc) if heredoc.is_none_or(|heredoc| equals < heredoc) => {
                (&line[..equals], line[equals + 1..].to_owned())
            }
            (_, Some(heredoc)) => {
                let delimiter = &line[heredoc + 2..];
                if delimiter.is_empty() {
                    return Err(format!("no delimiter: {line}"));
                }
                let mut value = Vec::new();
                loop {
                    match lines.next() {
                        None => return Err(format!("the delimiter {delimiter} never comes")),
                        Some(line) if line == delimiter => break,
                        Some(line) => value.push(line),
                    }
                }
                (&line[..heredoc], value.join("\n"))
            }
            _ => return Err(format!("neither NAME=VALUE nor NAME<<DELIMITER: {line}")),
        };
        if name.is_empty() {
            return Err(format!("no name: {line}"));
        }
        entries.insert(name.to_owned(), value);
    }
    Ok(entries)
}

/// The workflow commands that the runner would take from a log: a line that starts, after white space, with `::`, and `##[` anywhere
/// in a line.
pub(crate) fn commands(log: &str) -> Vec<&str> {
    log.lines().map(str::trim_start).filter(|line| line.starts_with("::") || line.contains("##[")).collect()
}

#[test]
fn command_files_are_read_by_the_runners_rules() {
    let read: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        ("a=b\n", &[("a", "b")]),
        ("a=b=c\n\nd=\n", &[("a", "b=c"), ("d", "")]),
        ("a<<EOF\none\ntwo=2\nEOF\nb=1\n", &[("a", "one\ntwo=2"), ("b", "1")]),
        ("a<<EOF\n EOF\nEOF\n", &[("a", " EOF")]),
        ("a=b<<c\n", &[("a", "b<<c")]),
        ("a<<E=F\nx\nE=F\n", &[("a", "x")]),
        ("a<<EOF\nEOF\n", &[("a", "")]),
    ];
    for (text, expected) in read {
        let expected = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(entries(text), Ok(expected), "{text:?}");
    }
    let refused = [
        ("a<<EOF\none\n", "the delimiter EOF never comes"),
        ("a<<\n\n", "no delimiter: a<<"),
        ("words\n", "neither NAME=VALUE nor NAME<<DELIMITER: words"),
        ("=b\n", "no name: =b"),
    ];
    for (text, why) in refused {
        assert_eq!(entries(text), Err(why.to_owned()), "{text:?}");
    }
}

#[test]
fn commands_in_a_log_are_found() {
    let log = "plain\n::notice title=a::b\n  ::error::c\nx ::error::no\nsee ##[warning]d\n";
    assert_eq!(commands(log), ["::notice title=a::b", "::error::c", "see ##[warning]d"]);
}
