//! What an agent's execution file says.

use run_guard::core::execution::{AgentResult, Execution, read};

fn result(success: bool, subtype: Option<&str>, cost_cents: Option<u64>, turns: Option<u64>) -> Execution {
    Execution::Result(AgentResult { success, subtype: subtype.map(str::to_owned), cost_cents, turns })
}

#[test]
fn the_last_result_counts() {
    let ok = Some("success");
    for (text, expected) in [
        ("", Execution::NoResult),
        (" \n", Execution::NoResult),
        ("[]", Execution::NoResult),
        (r#"[{"type":"system"},{"type":"assistant"}]"#, Execution::NoResult),
        (r#"[{"type":"result","subtype":"success"}]"#, result(true, ok, None, None)),
        (
            r#"[{"type":"result","subtype":"success","total_cost_usd":0.25,"num_turns":7}]"#,
            result(true, ok, Some(25), Some(7)),
        ),
        (r#"[{"type":"result","subtype":"success","cost_usd":1.5}]"#, result(true, ok, Some(150), None)),
        (r#"[{"type":"result","subtype":"success","is_error":true}]"#, result(false, ok, None, None)),
        (r#"[{"type":"result"}]"#, result(false, None, None, None)),
        (
            r#"[{"type":"result","subtype":"success"},{"type":"result","subtype":"error_max_turns"},{"type":"user"}]"#,
            result(false, Some("error_max_turns"), None, None),
        ),
        ("{\"type\":\"system\"}\n{\"type\":\"result\",\"subtype\":\"success\"}\n", result(true, ok, None, None)),
        ("\u{feff}[]", Execution::NoResult),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    for text in ["[{", "no JSON", "5", "[{\"type\":\"result\"}] and more"] {
        assert!(matches!(read(text), Execution::Unreadable(_)), "{text}");
    }
}

#[test]
fn costs_are_rounded_up_and_nonsense_is_no_cost() {
    for (cost, cents) in [
        ("0", Some(0)),
        ("0.00001", Some(1)),
        ("0.01", Some(1)),
        ("0.01004", Some(2)),
        ("0.07", Some(7)),
        ("0.30000000000000004", Some(30)),
        ("12.345", Some(1235)),
        ("1000000", Some(100_000_000)),
        ("1000001", None),
        ("-1", None),
        ("1e300", None),
        ("null", None),
        ("\"1\"", None),
    ] {
        let text = format!(r#"[{{"type":"result","total_cost_usd":{cost}}}]"#);
        assert_eq!(read(&text), result(false, None, cents, None), "{cost}");
    }
}
