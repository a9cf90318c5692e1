//! What a report looks like at the terminal, in JSON and in Actions, and that no text of a report breaks out of there.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use run_guard::app::report::{BudgetLeft, CheckReport, FinishReport};
use run_guard::core::claim::{Handle, LedgerKind, Outcome};
use run_guard::core::decision::{Gate, Link, Reason, Seen, Stop, Verdict};
use run_guard::core::key::{Key, Resource, Task};
use run_guard::core::marker::Marker;
use run_guard::output::terminal::Style;
use run_guard::output::{actions, escape, json, terminal};

use super::e2e::command_files::{commands, entries};

fn now() -> DateTime<Utc> {
    "2026-03-01T14:05:00Z".parse().unwrap()
}

fn task() -> Task {
    "investigate".parse().unwrap()
}

fn key() -> Key {
    Key::new("github.com", 4711, Resource::Issue(731), task(), None)
}

fn handle() -> Handle {
    Handle { ledger: LedgerKind::Label, anchor: None, key: key(), number: 1, nonce: "0a1b2c3d".parse().unwrap() }
}

fn seen(gate: Gate, saw: &str) -> Seen {
    Seen { gate, saw: saw.to_owned() }
}

fn way() -> Vec<Seen> {
    vec![
        seen(Gate::Trigger, "issues labeled by octocat, who may write"),
        seen(Gate::Loop, "a person's own words"),
        seen(Gate::State, "issue 731 is open"),
        seen(Gate::Duplicate, "the first claim of its key"),
        seen(Gate::Budget, "4 of 5 runs of the last hour are left"),
        seen(Gate::Claim, "claim 1 is next"),
    ]
}

fn stopped(stop: Stop) -> CheckReport {
    let gate = stop.reason.gate();
    CheckReport {
        path: way().into_iter().take_while(|s| s.gate != gate).collect(),
        repository: Some("acme/app".to_owned()),
        resource_url: Some("https://github.com/acme/app/issues/731".to_owned()),
        key: Some(key()),
        source_run_url: Some("https://github.com/acme/app/actions/runs/8812399".to_owned()),
        ..CheckReport::stopped(task(), stop)
    }
}

fn proceed() -> CheckReport {
    CheckReport {
        verdict: Verdict::Proceed,
        reason: None,
        message: "claim 1 is held by run 8812345 (attempt 1)".to_owned(),
        path: way(),
        claim: Some(handle()),
        fence: Some(1),
        marker: Some(Marker {
            key: key(),
            claim: 1,
            source_run_id: 8_812_345,
            nonce: "0a1b2c3d".parse().unwrap(),
            outcome: None,
        }),
        head_sha: None,
        budget: BudgetLeft { runs_hour: Some(4), runs_day: Some(19), cost_day_cents: Some(1205) },
        ..stopped(Stop::new(Reason::InProgress, ""))
    }
}

fn skip() -> CheckReport {
    let run = "https://github.com/acme/app/actions/runs/8812345";
    stopped(
        Stop::new(
            Reason::InProgress,
            "run 8812345 (attempt 1) has held claim 1 since 14:02, 3 min ago, and is still running",
        )
        .with_link("run 8812345", run),
    )
}

fn defer() -> CheckReport {
    let message = "5 of 5 runs of the last hour are used; the next place is free at 14:31 UTC";
    stopped(Stop::new(Reason::BudgetHour, message).with_retry_at(now() + TimeDelta::minutes(26)))
}

fn review() -> CheckReport {
    let message = "claim 1 ended failed-after-write, and what it left must be looked at";
    stopped(
        Stop::new(Reason::PreviousFailed, message)
            .with_link("the result", "https://github.com/acme/app/issues/731#issuecomment-9"),
    )
}

fn error() -> CheckReport {
    CheckReport {
        hint: Some("give the job `issues: write`".to_owned()),
        warnings: vec!["the reaction was refused: 403".to_owned()],
        ..stopped(Stop::new(
            Reason::LedgerDenied,
            "GitHub answered 403 \"Resource not accessible by integration\" to POST /repos/acme/app/labels",
        ))
    }
}

fn policy_error() -> CheckReport {
    let mistake = run_guard::config::parse("tasks:\n  triage:\n    max-run-per-hour: 5\n", ".github/run-guard.yml");
    stopped(Stop::new(Reason::PolicyInvalid, mistake.unwrap_err().to_string()))
}

fn unknown() -> CheckReport {
    CheckReport::stopped(task(), Stop::new(Reason::BadPayload, "the payload is empty"))
}

fn style() -> Style {
    Style { color: false, now: now() }
}

fn lines(outputs: &[(&str, String)]) -> String {
    outputs.iter().fold(String::new(), |text, (name, value)| format!("{text}{name}={value}\n"))
}

/// Everything that is made of a report, in one text.
fn everything(report: &CheckReport) -> String {
    let outputs = lines(&actions::outputs(report, now()));
    format!(
        "===== terminal\n{}===== annotation\n{}\n===== outputs\n{outputs}===== summary\n{}===== json\n{}",
        terminal::check(report, style()),
        actions::annotation(report),
        actions::summary(report, now()),
        json::text(&json::check(report, now()))
    )
}

#[test]
fn one_report_per_verdict() {
    for (name, report) in [
        ("proceed", proceed()),
        ("skip", skip()),
        ("defer", defer()),
        ("review", review()),
        ("error", error()),
        ("error_in_the_policy", policy_error()),
        ("error_of_which_nothing_is_known", unknown()),
        ("dry_run", CheckReport { dry_run: true, claim: None, ..proceed() }),
        ("proceed_without_a_claim", CheckReport { claim: None, fence: None, ..proceed() }),
    ] {
        insta::assert_snapshot!(name, everything(&report));
    }
}

fn finished() -> FinishReport {
    FinishReport {
        claim: Some(handle()),
        outcome: Some(Outcome::Completed),
        message: "the agent's step succeeded and its execution file says success".to_owned(),
        cost_cents: Some(42),
        turns: Some(12),
        warnings: vec![],
    }
}

fn everything_of(report: &FinishReport) -> String {
    let outputs = lines(&actions::finish_outputs(report));
    format!(
        "===== terminal\n{}===== annotation\n{}\n===== outputs\n{outputs}===== summary\n{}===== json\n{}",
        terminal::finish(report, style()),
        actions::finish_annotation(report),
        actions::finish_summary(report),
        json::text(&json::finish(report))
    )
}

#[test]
fn how_an_agent_ended() {
    insta::assert_snapshot!("finish_completed", everything_of(&finished()));
    let failed = FinishReport {
        claim: None,
        outcome: None,
        message: "the claim could not be read".to_owned(),
        cost_cents: None,
        turns: None,
        warnings: vec!["GitHub did not answer in time".to_owned()],
    };
    insta::assert_snapshot!("finish_not_settled", everything_of(&failed));
}

#[test]
fn colour_adds_nothing_but_colour() {
    for report in [proceed(), skip(), defer(), review(), error()] {
        let colored = terminal::check(&report, Style { color: true, ..style() });
        assert!(colored.contains("\u{1b}["));
        let mut plain = String::new();
        for (i, part) in colored.split('\u{1b}').enumerate() {
            plain.push_str(if i == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(plain, terminal::check(&report, style()));
    }
}

#[test]
fn outputs_do_not_depend_on_the_verdict_but_in_value() {
    let names =
        |report: &CheckReport| actions::outputs(report, now()).iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let all = [
        "verdict",
        "proceed",
        "reason",
        "message",
        "key",
        "digest",
        "claim",
        "fence",
        "marker",
        "source-run-url",
        "retry-after",
        "budget-remaining-runs-hour",
        "budget-remaining-runs-day",
        "budget-remaining-usd-day",
        "head-sha",
        "attached",
        "result-url",
        "partition",
    ];
    for report in [proceed(), skip(), defer(), review(), error(), unknown()] {
        assert_eq!(names(&report), all);
        let form = json::check(&report, now());
        for name in all {
            assert!(form.get(name.replace('-', "_")).is_some(), "{name} is no field of the JSON form");
        }
    }
}

#[test]
fn only_what_a_person_must_see_is_a_warning() {
    let level = |report: &CheckReport| actions::annotation(report).split_once(' ').unwrap().0.to_owned();
    for (reason, expected) in [
        (Reason::InProgress, "::notice"),
        (Reason::NotAuthorized, "::notice"),
        (Reason::Paused, "::notice"),
        (Reason::BudgetHour, "::warning"),
        (Reason::LedgerUnreachable, "::warning"),
        (Reason::PreviousFailed, "::warning"),
        (Reason::LoopRounds, "::warning"),
        (Reason::LedgerDenied, "::error"),
    ] {
        assert_eq!(level(&stopped(Stop::new(reason, "x"))), expected, "{reason}");
    }
    assert_eq!(level(&proceed()), "::notice");
}

#[test]
fn a_delimiter_that_the_value_holds_is_not_taken() {
    let outputs = [("message", "one\nrun_guard_a\nproceed=true".to_owned())];
    let mut words = ["a", "b"].into_iter().map(str::to_owned);
    let mut file = b"before=1\n".to_vec();
    actions::append_outputs(&mut file, &outputs, || words.next().unwrap()).unwrap();
    let text = String::from_utf8(file).unwrap();
    assert_eq!(text, "before=1\nmessage<<run_guard_b\none\nrun_guard_a\nproceed=true\nrun_guard_b\n");
    let error = actions::append_outputs(&mut Vec::new(), &outputs, || "a".to_owned()).unwrap_err();
    assert!(error.to_string().contains("no delimiter fits the output message"));
}

/// A report with a foreign text in every place that can hold one.
fn hostile(text: &str, verdict: usize) -> CheckReport {
    let mut report = [proceed(), skip(), defer(), review(), error()][verdict].clone();
    let foreign = || text.to_owned();
    report.message = foreign();
    report.path = way().into_iter().map(|s| Seen { saw: foreign(), ..s }).collect();
    report.evidence = vec![
        Link { what: foreign(), url: foreign() },
        Link { what: foreign(), url: format!("https://github.com/{text}") },
        Link { what: foreign(), url: "https://github.com/acme/app".to_owned() },
    ];
    report.hint = Some(foreign());
    report.repository = Some(foreign());
    report.resource_url = Some(format!("https://github.com/{text}"));
    report.source_run_url = Some(foreign());
    report.result_url = Some(foreign());
    report.head_sha = Some(foreign());
    report.warnings = vec![foreign(), foreign()];
    report
}

/// What must hold of everything that is made of a report, whatever text is in it.
fn nothing_breaks_out(report: &CheckReport) {
    // The file that the runner reads holds exactly the declared outputs with exactly their values.
    let outputs = actions::outputs(report, now());
    let mut file = Vec::new();
    let mut n = 0;
    actions::append_outputs(&mut file, &outputs, || {
        n += 1;
        format!("{n:08x}")
    })
    .unwrap();
    let read = entries(&String::from_utf8(file).unwrap()).unwrap();
    assert_eq!(read.len(), outputs.len());
    for (name, value) in &outputs {
        assert_eq!(&read[*name], value, "{name}");
    }
    let message = report.message.replace('\0', "\u{fffd}");
    if message.chars().count() <= 20_000 {
        assert_eq!(read["message"], message);
    } else {
        assert!(read["message"].chars().count() <= 20_000);
    }

    // The annotation is one command in one line, whose title and level are ours.
    let annotation = actions::annotation(report);
    assert!(!annotation.contains(escape::is_hidden), "{annotation:?}");
    assert!(!annotation.contains("##["));
    let (head, _) = annotation[2..].split_once("::").unwrap();
    let reason = report.reason.map_or("-", Reason::code);
    let title = format!("title=run-guard {} {reason} {}", report.verdict, key().digest());
    assert_eq!(head.split_once(' ').unwrap().1, title);
    assert!(annotation.len() < 64_000);
    let (_, data) = annotation[2..].split_once("::").unwrap();
    let decoded = data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    let said: Vec<String> = report.message.split('\n').map(escape::visible).collect();
    let said = said.join("\n").replace("##[", "## [");
    let whole = said.chars().count() < 3000;
    assert!(if whole { decoded == said } else { said.starts_with(decoded.trim_end_matches('…')) }, "{decoded}");

    // The log holds no command and no character that cannot be seen.
    for log in [terminal::check(report, style()), json::text(&json::check(report, now()))] {
        assert_eq!(commands(&log), Vec::<&str>::new());
        assert!(!log.contains(|c: char| c != '\n' && escape::is_hidden(c)), "{log:?}");
    }

    // The summary is small, holds no HTML, image or foreign mark-up, pings nobody and links only to GitHub.
    let summary = actions::summary(report, now());
    assert!(summary.len() < 1024 * 1024, "{}", summary.len());
    is_harmless(&summary);

    // Programs read back what was said.
    let form: serde_json::Value = serde_json::from_str(&json::text(&json::check(report, now()))).unwrap();
    assert_eq!(form["message"], report.message);
}

fn is_harmless(markdown: &str) {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
    let (mut code, mut headings, mut text) = (false, 0, String::new());
    let mut cells = 0;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => panic!("HTML {html:?} in\n{markdown}"),
            Event::Start(Tag::Image { .. } | Tag::FootnoteDefinition(_) | Tag::Strikethrough | Tag::BlockQuote(_))
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_)
            | Event::Rule => panic!("foreign mark-up in\n{markdown}"),
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(dest_url.starts_with("https://github.com/"), "{dest_url}");
            }
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Start(Tag::Heading { .. }) => headings += 1,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::Text(part) if !code => text.push_str(&part),
            Event::End(_) | Event::SoftBreak => text.push('\n'),
            _ => {}
        }
    }
    assert_eq!(headings, 1, "{markdown}");
    assert_eq!(cells % 3, 0, "{markdown}");
    let mentions = text.split('@').skip(1).any(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
    assert!(!mentions, "{text}");
}

#[test]
fn hostile_text_stays_text() {
    let mut texts: Vec<String> = super::e2e::hostile::texts().into_iter().map(|(_, text)| text).collect();
    texts.extend(
        [
            "",
            " ",
            "::error::x",
            "  ::error::x",
            "##[error]x",
            "a\n\n::stop-commands::t\n",
            "%0A::error::",
            "x%25",
            "run_guard_00000001",
            "a\nrun_guard_00000001\nproceed=true",
            "```\n<script>\n```",
            "~~~\n# x\n~~~",
            "| a | b |",
            "[x]: https://evil.example",
            "![x](https://evil.example)",
            "<https://evil.example>",
            "*a* _b_ ~~c~~ `d`",
            "- [ ] x",
            "1. x",
            "# x",
            "> x",
            "---",
            "&lt;b&gt; &#64;admin",
            "\\@admin",
            "@acme/team",
            "a@b.example",
            "\\",
            "a\\",
            "\u{2028}::error::",
            "    code",
            "\tcode",
            "[^1]",
            "<!-- x -->",
            "$(x) ${{ x }}",
            "\r::error::",
        ]
        .map(str::to_owned),
    );
    for text in texts {
        for verdict in 0..5 {
            nothing_breaks_out(&hostile(&text, verdict));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_stays_text(
        text in "(::[a-z]{1,8}( [a-z]=[a-z])?::|##\\[|%0[AD]|run_guard_0000000[0-9]|EOF|<<|=|[\\n\\r\\t @<>&`|*_~#!\\[\\]()\\\\-]|\\PC|\\p{Cc}|\\p{Cf}){0,40}",
        verdict in 0..5_usize,
    ) {
        nothing_breaks_out(&hostile(&text, verdict));
    }
}
