//! What each method of the port sends, and what it makes of GitHub's usual answers.

use std::collections::BTreeMap;

use run_guard::core::facts::{Permission, RunState};
use run_guard::ports::{GitHub as _, LabelPage, Listing, PortError, Probe, Probed, ReactTo, WindowPage};
use serde_json::{Value, json};

use super::server::{Does, Sent, TOKEN, with_server};
use super::{label, repo, time, whole_query};

/// The requests as a snapshot shows them.
fn shown(sent: &[Sent]) -> Vec<Value> {
    for request in sent {
        assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
        let length = request.headers.get("content-length").map_or("0", String::as_str);
        assert_eq!(length == "0", request.body.is_null(), "a body without a length: {request:?}");
    }
    sent.iter().map(Sent::shown).collect()
}

#[test]
fn reads() {
    let page = json!({ "data": { "repository": { "window": {
        "nodes": [{ "name": "rg:a:b:1", "description": null, "createdAt": "2026-11-30T10:00:00Z" }],
        "pageInfo": { "hasNextPage": true, "endCursor": "Y3Vyc29y" },
    } } } });
    let named = json!({ "data": { "repository": {
        "databaseId": 42,
        "c1": { "name": "rg:a:b:1", "description": "words", "createdAt": null },
        "c2": null,
    } } });
    let permission = json!({ "permission": "write", "role_name": "maintain", "user": null });
    let run = json!({
        "id": 5, "run_attempt": 2, "status": "completed", "conclusion": "failure", "updated_at": "2026-11-30T10:00:00Z",
        "run_started_at": "2026-11-30T09:00:00Z", "html_url": "https://github.com/acme/app/actions/runs/5",
    });
    let one = json!({ "id": 1, "name": "a/b?c#d %2f é", "description": null, "color": "ededed" });
    let does =
        [&json!({ "data": {} }), &page, &page, &named, &permission, &run, &one].map(|body| Does::json(200, body));
    let ((), sent) = with_server(does.to_vec(), async |client| {
        client.facts(&whole_query()).await.unwrap();
        let first = client.window_page(&repo(), Listing::Labels, None).await.unwrap();
        let next = client.window_page(&repo(), Listing::Labels, Some("Y3Vyc29y")).await.unwrap();
        assert_eq!(first, next);
        let mut newest = label("rg:a:b:1", "");
        newest.created_at = Some(time("2026-11-30T10:00:00Z"));
        let page = LabelPage { labels: vec![newest], next: Some("Y3Vyc29y".to_owned()) };
        assert_eq!(first, WindowPage::Labels(page));
        let asked = ["rg:a:b:1".to_owned(), "none".to_owned()];
        assert_eq!(
            client.probe(&repo(), &Probe::Labels(asked.to_vec())).await.unwrap(),
            Probed::Labels(BTreeMap::from([("rg:a:b:1".to_owned(), label("rg:a:b:1", "words"))]))
        );
        assert_eq!(client.permission(&repo(), "mona").await.unwrap(), Permission::Write);
        assert_eq!(
            client.run(&repo(), 5).await.unwrap(),
            RunState::Found {
                attempt: 2,
                conclusion: Some("failure".to_owned()),
                updated_at: time("2026-11-30T10:00:00Z"),
                started_at: Some(time("2026-11-30T09:00:00Z")),
                url: "https://github.com/acme/app/actions/runs/5".to_owned(),
            }
        );
        assert_eq!(client.label(&repo(), "a/b?c#d %2f é").await.unwrap(), Some(label("a/b?c#d %2f é", "")));
        assert_eq!(client.server_time(), Some(time("2026-11-30T12:00:00Z")));
    });
    insta::assert_yaml_snapshot!(shown(&sent));
}

#[test]
fn writes() {
    let one = json!({ "id": 2_412_345_678_u64, "name": "x", "description": "y", "color": "ededed" });
    let does = [
        Does::json(201, &one),
        Does::json(200, &one),
        Does::json(200, &json!([one])),
        Does::json(200, &json!([])),
        Does::json(201, &one),
        Does::json(201, &one),
        Does::json(200, &one),
    ];
    let ((), sent) = with_server(does.to_vec(), async |client| {
        client.create_label(&repo(), &label("rg:a:b:1", "words"), "ededed").await.unwrap();
        client.describe_label(&repo(), "rg:a:b:1", "other words").await.unwrap();
        client.add_labels(&repo(), 731, &["one".to_owned(), "two, three".to_owned()]).await.unwrap();
        client.remove_label(&repo(), 731, "../../../x").await.unwrap();
        assert_eq!(client.create_comment(&repo(), 731, "Hello\n\"you\"").await.unwrap(), 2_412_345_678);
        client.react(&repo(), ReactTo::Issue(731), "confused").await.unwrap();
        client.react(&repo(), ReactTo::Comment(2_412_345_678), "confused").await.unwrap();
    });
    insta::assert_yaml_snapshot!(shown(&sent));
}

#[test]
fn what_is_not_there_is_an_answer() {
    let missing = || vec![Does::json(404, &json!({ "message": "Not Found", "status": "404" }))];
    let (found, _) = with_server(missing(), async |client| client.permission(&repo(), "mona").await);
    assert_eq!(found, Ok(Permission::None));
    let (found, _) = with_server(missing(), async |client| client.run(&repo(), 5).await);
    assert_eq!(found, Ok(RunState::Missing));
    let (found, _) = with_server(missing(), async |client| client.label(&repo(), "x").await);
    assert_eq!(found, Ok(None));
    let (done, _) = with_server(missing(), async |client| client.remove_label(&repo(), 731, "x").await);
    assert_eq!(done, Ok(()));
    let (done, _) = with_server(missing(), async |client| client.describe_label(&repo(), "x", "y").await);
    assert!(matches!(done, Err(PortError::Missing { status: 404, .. })), "{done:?}");
}

#[test]
fn permissions_are_folded() {
    let cases = [
        (json!({ "permission": "admin", "role_name": "admin" }), Some(Permission::Admin)),
        (json!({ "permission": "write", "role_name": "our-own-role" }), Some(Permission::Write)),
        (json!({ "permission": "read", "role_name": "triage" }), Some(Permission::Read)),
        (json!({ "permission": "none", "role_name": "" }), Some(Permission::None)),
        (json!({ "permission": "read" }), Some(Permission::Read)),
        (json!({ "permission": "maintain", "role_name": null }), Some(Permission::Write)),
        (json!({ "permission": "owner", "role_name": "admin" }), Some(Permission::Admin)),
        (json!({ "permission": "owner", "role_name": "owner" }), None),
        (json!({ "role_name": "admin" }), None),
    ];
    for (body, want) in cases {
        let (found, _) =
            with_server(vec![Does::json(200, &body)], async |client| client.permission(&repo(), "mona").await);
        match want {
            Some(want) => assert_eq!(found, Ok(want), "{body}"),
            None => assert!(matches!(found, Err(PortError::Malformed { .. })), "{body}: {found:?}"),
        }
    }
}

#[test]
fn a_run_is_over_when_it_says_completed() {
    let cases = [
        (json!({ "status": "in_progress", "conclusion": null }), None),
        (json!({ "status": "queued", "conclusion": "success" }), None),
        (json!({ "status": null, "conclusion": null }), None),
        (json!({ "status": "completed", "conclusion": "cancelled" }), Some("cancelled")),
        (json!({ "status": "completed", "conclusion": null }), Some("unknown")),
    ];
    for (mut body, want) in cases {
        body["updated_at"] = json!("2026-11-30T10:00:00Z");
        body["html_url"] = json!("https://github.com/acme/app/actions/runs/5");
        let (found, _) = with_server(vec![Does::json(200, &body)], async |client| client.run(&repo(), 5).await);
        let RunState::Found { attempt: 1, conclusion, .. } = found.unwrap() else { panic!("{body}") };
        assert_eq!(conclusion.as_deref(), want, "{body}");
    }
}

#[test]
fn no_name_climbs_out_of_its_place() {
    let ((), sent) = with_server(vec![], async |client| {
        for name in ["", ".", ".."] {
            let error = client.remove_label(&repo(), 731, name).await.unwrap_err();
            assert!(matches!(error, PortError::Malformed { .. }), "{error}");
            assert!(client.permission(&repo(), name).await.is_err());
            assert!(client.label(&repo(), name).await.is_err());
        }
    });
    assert!(sent.is_empty(), "{sent:?}");
}

#[test]
fn an_enterprise_server_has_its_paths() {
    let ((), sent) = with_server(vec![Does::json(404, &json!({})), Does::json(404, &json!({}))], async |client| {
        let address = client_address(client);
        let client = super::server::client(&format!("{address}/api/v3/"), std::time::Duration::from_secs(20));
        let error = client.describe_label(&repo(), "x", "y").await.unwrap_err();
        assert_eq!(error.to_string(), "GitHub answered 404 \"{}\" to PATCH /repos/acme/app/labels/x");
        client.window_page(&repo(), Listing::Labels, None).await.unwrap_err();
    });
    let paths: Vec<&str> = sent.iter().map(|s| s.path.as_str()).collect();
    assert_eq!(paths, ["/api/v3/repos/acme/app/labels/x", "/api/graphql"]);
}

/// The loopback address that a client asks.
fn client_address(client: &run_guard::github::Client) -> String {
    client.hosts().api().as_str().trim_end_matches('/').to_owned()
}
