//! Where a person really speaks to the agent.

use run_guard::core::text::{MAX_TEXT_BYTES, is_agents_report, is_working_notice, requests, requests_in_title};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    text: String,
    #[serde(default = "claude")]
    phrase: String,
    /// The requests that are in it.
    requests: Vec<String>,
}

fn claude() -> String {
    "@claude".to_owned()
}

#[test]
fn requests_are_found_where_the_file_says() {
    let cases: Vec<Case> = serde_yaml::from_str(include_str!("cases/text.yml")).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let found: Vec<String> = requests(&case.text, &case.phrase).into_iter().map(|r| r.text).collect();
        assert_eq!(found, case.requests, "{}", case.name);
        let windows = case.text.replace('\n', "\r\n");
        let found: Vec<String> = requests(&windows, &case.phrase).into_iter().map(|r| r.text).collect();
        assert_eq!(found, case.requests, "{} with CRLF", case.name);
    }
}

#[test]
fn a_title_is_one_line_of_text() {
    for (title, found) in [
        ("@claude", true),
        ("# @claude", true),
        ("> @claude", true),
        ("    @claude", true),
        ("1. @claude", true),
        ("- [ ] @claude", true),
        ("``` @claude", true),
        ("<div> @claude", true),
        ("`@claude` hangs", false),
        ("me@claude hangs", false),
        ("", false),
    ] {
        assert_eq!(!requests_in_title(title, "@claude").is_empty(), found, "{title:?}");
    }
}

/// Nesting and repetition without end: the result is right, and it comes before the test's own time runs out, which a
/// quadratic parser's would not, nor a recursive one's.
#[test]
fn hostile_texts_are_read_to_the_end() {
    let many = 100_000;
    for (name, text, found) in [
        ("quotes", format!("{} @claude", ">".repeat(many)), 0),
        ("brackets", format!("{}\n\n@claude", "[".repeat(many)), 1),
        ("links", format!("{}\n\n@claude", "[a](".repeat(many / 2)), 1),
        ("images", format!("{}\n\n@claude", "![".repeat(many)), 1),
        ("stars", format!("{}\n\n@claude", "*a ".repeat(many / 2)), 1),
        ("ticks", format!("{}\n\n@claude", "`a``b".repeat(many / 4)), 1),
        ("comments", format!("{}\n\n@claude", "<!-- x -->\n\n".repeat(many / 10)), 1),
        ("open tags", format!("<div>\n{}\n\n@claude", "<a '".repeat(many / 4)), 1),
        ("elements", format!("{}\n\n@claude", "<b><code>".repeat(many / 10)), 1),
        ("items", format!("{}@claude", "- ".repeat(1000)), 1),
        ("words", "@claude ".repeat(8192), 1),
    ] {
        assert_eq!(requests(&text, "@claude").len(), found, "{name}");
    }
    let long = format!("{}\n\n@claude", "\u{1F600}".repeat(MAX_TEXT_BYTES / 4));
    assert!(requests(&long, "@claude").is_empty(), "what is beyond the limit is not read");
}

#[test]
fn an_agents_report_is_told_by_its_form() {
    let link = "[View job](https://github.com/acme/app/actions/runs/1)";
    for (body, notice, report) in [
        (format!("Claude Code is working\u{2026} {link}"), true, true),
        (format!("Claude Code is working... {link}"), true, true),
        ("Claude Code is working.".to_owned(), true, false),
        ("Claude Code is working well".to_owned(), false, false),
        (format!("**Claude finished @alice's task in 1m 30s** —— {link}"), false, true),
        (format!("**Claude encountered an error** —— {link}"), false, true),
        (format!("Claude finished {link}"), false, false),
        (format!("> **Claude finished @alice's task** —— {link}"), false, false),
        (String::new(), false, false),
    ] {
        assert_eq!((is_working_notice(&body), is_agents_report(&body, "Acme/App")), (notice, report), "{body}");
    }
}
