//! Answers that come over the wire and are not what GitHub promises: cut off, garbled, late, of another form.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use run_guard::github::{Client, Hosts, Token};
use run_guard::sim::http::Server;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::support::{ask_bytes, start_server_unrecorded};

/// What becomes of one answer on its way.
#[derive(Clone, Debug)]
enum Wire {
    /// Nothing of it is sent, and the connection stays open.
    Hangs,
    /// Half of it is sent.
    Cut,
    /// Another body, with the status of a success.
    Body(String),
    /// Without the time.
    NoDate,
    /// One node of it is another.
    Node(String, Value),
}

/// A clock that is the server's. Waiting moves the server on.
struct ServerClock<'a>(&'a Server);

impl Clock for ServerClock<'_> {
    fn now(&self) -> DateTime<Utc> {
        self.0.state().now
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        let mut state = self.0.state();
        state.now = state.now.max(at);
    }
}

/// The embedded GitHub behind a line that garbles the answers with these indices.
struct Line {
    server: Server,
    address: String,
    /// What becomes of which answer, and what was answered so far.
    traffic: Arc<Mutex<Traffic>>,
}

#[derive(Default)]
struct Traffic {
    wires: BTreeMap<usize, Wire>,
    answers: Vec<Value>,
}

impl Line {
    async fn new(state: State, wires: BTreeMap<usize, Wire>) -> Self {
        let server = start_server_unrecorded(state).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let traffic = Arc::new(Mutex::new(Traffic { wires, answers: Vec::new() }));
        tokio::spawn(garble(listener, server.base_url(), Arc::clone(&traffic)));
        Self { server, address, traffic }
    }

    /// From the next answer on, these become something else.
    fn garbles(&self, wires: BTreeMap<usize, Wire>) {
        *self.traffic.lock().unwrap() = Traffic { wires, answers: Vec::new() };
    }

    fn client(address: &str, patience: Duration) -> Client {
        let hosts = Hosts::new(Some(address), None, Some("https://github.com")).unwrap();
        Client::new(hosts, Token::new(TOKEN).unwrap(), patience, start).unwrap()
    }

    async fn check(&self, address: &str, run: u64, patience: Duration) -> CheckReport {
        self.check_through(&Self::client(address, patience), run).await
    }

    async fn check_through(&self, client: &Client, run: u64) -> CheckReport {
        let clock = ServerClock(&self.server);
        let world = World { github: client, clock: &clock, nonce: nonce_of(run, 1) };
        let report = check(&world, &input("issues", opened(), run)).await;
        assert!(!report.message.is_empty() && (report.proceeds() || report.reason.is_some()), "{report:?}");
        report
    }

    /// Over the line, and past it.
    async fn checked(&self, run: u64) -> CheckReport {
        self.check(&self.address, run, Duration::from_secs(20)).await
    }

    async fn plainly_checked(&self, run: u64) -> CheckReport {
        self.check(&self.server.base_url(), run, Duration::from_secs(20)).await
    }

    fn claims(&self) -> BTreeMap<u32, Record> {
        self.server.state().claims_of(REPO, &key())
    }
}

async fn garble(listener: TcpListener, base: String, traffic: Arc<Mutex<Traffic>>) {
    let mut open = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let mut stream = BufReader::new(stream);
        let Some((method, path, body)) = read(&mut stream).await else { continue };
        let answer = ask_bytes(&base, Some(TOKEN), &method, &path, body).await.unwrap();
        let wire = {
            let mut traffic = traffic.lock().unwrap();
            traffic.answers.push(answer.body.clone());
            traffic.wires.get(&(traffic.answers.len() - 1)).cloned()
        };
        let mut said = answer.body;
        let mut status = answer.status;
        let mut date = answer.headers.get("date").map(|date| format!("date: {date}\r\n")).unwrap_or_default();
        match &wire {
            Some(Wire::Node(pointer, value)) => {
                if let Some(node) = said.pointer_mut(pointer) {
                    *node = value.clone();
                }
            }
            Some(Wire::NoDate) => date.clear(),
            _ => {}
        }
        let mut text = said.to_string();
        if let Some(Wire::Body(body)) = &wire {
            (status, text) = (200, body.clone());
        }
        let head = format!("HTTP/1.1 {status} X\r\n{date}content-type: application/json\r\n");
        let whole = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
        let sent = match wire {
            Some(Wire::Hangs) => "",
            Some(Wire::Cut) => &whole[..whole.len() - text.len() / 2 - 1],
            _ => &whole,
        };
        let mut stream = stream.into_inner();
        let _ = stream.write_all(sent.as_bytes()).await;
        if matches!(wire, Some(Wire::Hangs)) {
            open.push(stream);
        } else {
            let _ = stream.shutdown().await;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((method, path, body))
}

#[tokio::test]
async fn an_answer_that_is_garbled_starts_nothing_twice_and_loses_nothing() {
    let bodies = ["", "<html>502</html>", "null", "[]", "{}", "{\"data\":null}", "{\"data\":{}}", "\u{0}", "{\"id\":"];
    let mut wires: Vec<Wire> = bodies.into_iter().map(|body| Wire::Body(body.to_owned())).collect();
    wires.extend([Wire::Cut, Wire::NoDate]);
    for wire in wires {
        for first in 0..4 {
            for times in 1..=2 {
                let strikes = (first..first + times).map(|index| (index, wire.clone())).collect();
                let line = Line::new(github(), strikes).await;
                let report = line.checked(500).await;
                let open = line.claims().values().any(|record| record.owner.run == 500);
                assert!(open || !report.proceeds(), "{wire:?} at {first}: {report:?}");
                let other = line.plainly_checked(501).await;
                assert_eq!(other.proceeds(), !open, "{wire:?} at {first}: {report:?} {other:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_starts_nothing_twice() {
    for index in 0..3 {
        let line = Line::new(github(), BTreeMap::from([(index, Wire::Hangs)])).await;
        let report = line.check(&line.address, 500, Duration::from_millis(500)).await;
        let open = line.claims().values().any(|record| record.owner.run == 500);
        assert!(open || !report.proceeds(), "{index}: {report:?}");
        let other = line.plainly_checked(501).await;
        assert_eq!(other.proceeds(), !open, "{index}: {report:?} {other:?}");
    }
}

/// Whatever one part of the facts becomes, work that is done or held is not started, nor what is closed or paused. Every
/// part becomes null; with `RUN_GUARD_RACE=full` also something of each other form.
#[tokio::test]
async fn no_part_of_the_facts_that_is_something_else_starts_what_must_not_start() {
    let held = {
        let line = Line::new(github(), BTreeMap::new()).await;
        assert!(line.plainly_checked(500).await.proceeds());
        line.server.state().clone()
    };
    let mut closed = github();
    assert!(closed.close(REPO, ISSUE));
    let mut paused = github();
    paused.set_file(REPO, ".github/run-guard.yml", &policy("paused: true"));
    let full = std::env::var("RUN_GUARD_RACE").is_ok_and(|size| size == "full");
    let mut tried = 0;
    for (what, state) in [("held", held), ("closed", closed), ("paused", paused)] {
        let line = Line::new(state, BTreeMap::new()).await;
        let client = Line::client(&line.address, Duration::from_secs(20));
        line.check_through(&client, 501).await;
        let facts = line.traffic.lock().unwrap().answers.iter().find(|a| a.get("data").is_some()).unwrap().clone();
        let mut nodes = Vec::new();
        super::payloads::pointers(&facts, "", &mut nodes);
        // Of 32 claims that are not there two say as much as all; and what is said itself may say anything.
        nodes.retain(|pointer| {
            let many = pointer.starts_with("/data/repository/c") && pointer.as_bytes()[18].is_ascii_digit();
            !many || pointer.starts_with("/data/repository/c1/") || pointer == "/data/repository/c1"
        });
        for pointer in nodes {
            let all = [json!(null), json!({}), json!(false), json!(0), json!("x"), json!([])];
            for to in all.into_iter().take(if full { 6 } else { 1 }) {
                let says_so = pointer == "/data/repository/issueOrPullRequest/closed" && to == json!(false)
                    || pointer == "/data/repository/policy" && to.is_null()
                    || pointer == "/data/repository/policy/text" && to == json!("");
                if says_so && what != "held" {
                    continue;
                }
                // The facts are the first or, asked at the same time as a permission, the second.
                let wire = Wire::Node(pointer.clone(), to.clone());
                line.garbles((0..2).map(|index| (index, wire.clone())).collect());
                let report = line.check_through(&client, 501).await;
                assert!(!report.proceeds(), "{what}: {pointer} became {to}: {report:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
}
