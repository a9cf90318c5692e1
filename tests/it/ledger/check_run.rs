//! What is the check-run ledger's alone: the election, whose check runs count, and what people see.

use run_guard::core::lease::{Acquire, CreateAnswer, Next};
use run_guard::core::policy::Policy;
use run_guard::sim::{CheckLists, CheckWords, Session};

use super::*;

const DIGEST_OF: &str = "github.com/42/issue/731/triage";

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn ledger(github: &InProcess) -> AnyLedger<'_, InProcess> {
    AnyLedger::new(LedgerKind::CheckRun, anchor(LedgerKind::CheckRun), github)
}

fn repo() -> RepoName {
    RepoName::parse(REPO).unwrap()
}

/// A contender on its way, which carries out what the protocol says one request at a time.
struct Contender<'a> {
    ledger: AnyLedger<'a, InProcess>,
    record: Record,
    acquire: Acquire,
    next: Next,
}

impl<'a> Contender<'a> {
    fn new(github: &'a InProcess, run: u64) -> Self {
        let record = record(run);
        let acquire = Acquire::elected(record.owner.clone());
        // Who looks is known from the facts, which every contender reads first.
        let ledger = ledger(github);
        let probed = self::run(github.probe(&repo(), &ledger.probe(&key()))).unwrap();
        ledger.claims(&key(), &probed).unwrap();
        Self { ledger, record, acquire, next: Next::Create }
    }

    fn step(&mut self) -> &Next {
        self.next = match &self.next {
            Next::Create => {
                let answer = match run(self.ledger.create(&repo(), &key(), 1, &self.record, None)) {
                    Ok(_) => CreateAnswer::Made,
                    Err(_) => CreateAnswer::Unknown,
                };
                self.acquire.created(answer)
            }
            Next::Read(_) => {
                let seen = run(self.ledger.candidates(&repo(), &key(), 1));
                self.acquire.listed(seen.as_deref().ok())
            }
            over => over.clone(),
        };
        &self.next
    }

    fn run_out(mut self) -> (Next, Vec<Claim>) {
        while matches!(self.next, Next::Create | Next::Read(_)) {
            self.step();
        }
        (self.next, self.acquire.leftovers().to_vec())
    }
}

/// Lets two contenders go in every order of their first two steps, create and list; how often each won.
fn winners(lists: CheckLists) -> Vec<(bool, bool)> {
    let orders = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]];
    orders
        .into_iter()
        .map(|order| {
            let state = Rc::new(RefCell::new(github(true)));
            state.borrow_mut().check_lists = lists;
            let github = InProcess::new(Rc::clone(&state), TOKEN);
            let mut both = [Contender::new(&github, 7), Contender::new(&github, 8)];
            for who in order {
                both[who].step();
            }
            let [first, second] = both.map(|contender| contender.run_out().0 == Next::Won);
            (first, second)
        })
        .collect()
}

#[test]
fn in_whatever_order_two_come_the_lower_check_run_wins() {
    let by_creation = [(true, false), (true, false), (true, false), (false, true), (false, true), (false, true)];
    assert_eq!(winners(CheckLists::Whole), by_creation);
    // Lists that are late but in order make them wait, and change nothing.
    for by in 1..4 {
        assert_eq!(winners(CheckLists::Late(by)), by_creation, "late by {by}");
    }
}

/// The condition of this ledger. Whoever sees its own check run and not an older one takes itself for elected.
#[test]
fn lists_out_of_order_elect_two() {
    assert!(winners(CheckLists::NewestFirst(3)).contains(&(true, true)));
}

#[test]
fn a_creation_whose_answer_is_lost_is_found_again_and_not_made_twice() {
    for effect in [true, false] {
        let state = Rc::new(RefCell::new(github(true)));
        let github = InProcess::new(Rc::clone(&state), TOKEN);
        let contender = Contender::new(&github, 7);
        state.borrow_mut().plan(Planned::next(Op::CreateCheckRun, Fault::Lost { effect }));
        let (next, leftovers) = contender.run_out();
        assert_eq!((next, leftovers), (Next::Won, vec![]), "{effect}");
        assert_eq!(state.borrow().checks(REPO).len(), 1, "{effect}");
    }
}

/// The first one shows only after another was sent: both are one owner's, and the first is the claim.
#[test]
fn of_two_check_runs_of_one_owner_the_first_is_its_claim() {
    let state = Rc::new(RefCell::new(github(true)));
    state.borrow_mut().check_lists = CheckLists::Late(4);
    let github = InProcess::new(Rc::clone(&state), TOKEN);
    let contender = Contender::new(&github, 7);
    state.borrow_mut().plan(Planned::next(Op::CreateCheckRun, Fault::Server { status: 502, effect: true }));
    assert_eq!(contender.run_out().0, Next::Won);
    let ids: Vec<String> = state.borrow().checks(REPO).iter().map(|check| check.id.to_string()).collect();
    assert_eq!(ids.len(), 2);
    state.borrow_mut().check_lists = CheckLists::Whole;
    assert_eq!(Contender::new(&github, 8).run_out().0, Next::Lost(own(&ids[0], 7)));
}

fn own(id: &str, run: u64) -> ClaimRead {
    ClaimRead::Readable(Claim { number: 1, thing: Thing(id.to_owned()), record: record(run) })
}

/// A check run that was given back keeps its number: a late contender does not win it.
#[test]
fn a_number_that_was_given_back_is_not_won_again() {
    let state = Rc::new(RefCell::new(github(true)));
    let github = InProcess::new(Rc::clone(&state), TOKEN);
    let late = Contender::new(&github, 9);
    let ledger = ledger(&github);
    let Created::Made(thing) = run(ledger.create(&repo(), &key(), 1, &record(7), None)).unwrap() else { panic!() };
    let claim = Claim { number: 1, thing, record: record(7) };
    let settlement = Settlement { outcome: Outcome::Withdrawn, at: now(), cost_cents: None, result_comment: None };
    let withdrawn = Record { state: ClaimState::Settled(settlement), ..record(7) };
    run(ledger.rewrite(&repo(), &key(), &claim, &withdrawn)).unwrap();
    let (next, leftovers) = late.run_out();
    let Next::Lost(ClaimRead::Readable(to)) = next else { panic!("{next:?}") };
    assert_eq!((to.record, leftovers.len()), (withdrawn, 1));
}

#[test]
fn what_people_see() {
    let page = "https://github.com/acme/app/actions/runs/7";
    let cases = [
        (None, "in_progress", None, "in progress"),
        (Some(Outcome::Completed), "completed", Some("success"), "completed"),
        (Some(Outcome::NoChange), "completed", Some("neutral"), "no-change"),
        (Some(Outcome::FailedBeforeWrite), "completed", Some("failure"), "failed-before-write"),
        (Some(Outcome::FailedAfterWrite), "completed", Some("failure"), "failed-after-write"),
        (Some(Outcome::NeedsReview), "completed", Some("action_required"), "needs-review"),
        (Some(Outcome::Superseded), "completed", Some("neutral"), "superseded"),
        (Some(Outcome::Withdrawn), "completed", Some("neutral"), "withdrawn"),
    ];
    for (outcome, status, conclusion, title) in cases {
        let state = Rc::new(RefCell::new(github(true)));
        let github = InProcess::new(Rc::clone(&state), TOKEN);
        let ledger = ledger(&github);
        let Created::Made(thing) = run(ledger.create(&repo(), &key(), 1, &record(7), None)).unwrap() else { panic!() };
        if let Some(outcome) = outcome {
            let settlement = Settlement { outcome, at: now(), cost_cents: None, result_comment: None };
            let settled = Record { state: ClaimState::Settled(settlement), ..record(7) };
            let claim = Claim { number: 1, thing, record: record(7) };
            run(ledger.rewrite(&repo(), &key(), &claim, &settled)).unwrap();
        }
        let state = state.borrow();
        let [check] = state.checks(REPO)[..] else { panic!("one check run") };
        let said = &check.said;
        assert_eq!(check.name, format!("run-guard triage {}", key().digest()));
        assert_eq!(said.external_id.as_deref(), Some(key().digest().as_str()));
        assert_eq!((said.status.as_deref(), said.conclusion.as_deref()), (Some(status), conclusion), "{outcome:?}");
        assert_eq!((said.title.as_deref(), said.details_url.as_deref()), (Some(title), Some(page)));
        assert_eq!(said.summary.as_deref(), Some("Claim 1 of the task `triage` on issue 731, by run 7."));
        assert_eq!((said.started_at, said.completed_at), (Some(now()), outcome.map(|_| now())));
    }
}

/// Makes a check run as an App of this login.
fn check_by(state: &Rc<RefCell<State>>, login: &str, name: &str, external_id: &str, text: &str) {
    let token = format!("token of {login}");
    let mut state = state.borrow_mut();
    state.add_token(&token, TokenSpec::app(login, "checks: write".parse().unwrap()));
    let words =
        CheckWords { external_id: Some(external_id.to_owned()), text: Some(text.to_owned()), ..CheckWords::default() };
    let call = run_guard::sim::CallInfo { op: Op::CreateCheckRun, method: "POST", path: String::new() };
    let commit = anchor(LedgerKind::CheckRun).unwrap();
    let make =
        |state: &mut State, session: &Session| state.create_check_run(session, &repo(), name, commit.as_str(), words);
    let answer = state.request(Some(&token), call, None, make);
    assert!(matches!(answer, run_guard::sim::Answer::Answered(Ok(_))), "{answer:?}");
}

#[test]
fn only_check_runs_of_ones_own_app_and_of_the_key_count() {
    let (digest, good) = (key().digest(), run_guard::core::claim::check_text(1, &record(9)));
    let name = format!("run-guard triage {digest}");
    let (own, other) = ("github-actions[bot]", "other-app[bot]");
    let counts: &[(&str, &str, &str, &str, Option<u32>)] = &[
        (own, &name, digest.as_str(), &good, Some(1)),
        (other, &name, digest.as_str(), &good, None),
        (own, &name, "0123456789ab", &good, None),
        (own, &name, "", &good, None),
        (own, "run-guard triage", digest.as_str(), &good, None),
    ];
    for (login, name, external_id, text, seen) in counts {
        let state = Rc::new(RefCell::new(github(true)));
        check_by(&state, login, name, external_id, text);
        let github = InProcess::new(Rc::clone(&state), TOKEN);
        let ledger = ledger(&github);
        let probed = run(github.probe(&repo(), &ledger.probe(&key()))).unwrap();
        let claims = ledger.claims(&key(), &probed).unwrap();
        assert_eq!(claims.keys().next().copied(), *seen, "{login} {name} {external_id}");
        let listed = run(ledger.candidates(&repo(), &key(), 1)).unwrap();
        assert_eq!(listed.len(), usize::from(seen.is_some()), "{login} {name} {external_id}");
    }
}

/// A person's token writes no check runs, and looks at those of whatever App the workflows use.
#[test]
fn a_person_sees_the_claims_and_makes_none() {
    let state = Rc::new(RefCell::new(github(true)));
    let text = run_guard::core::claim::check_text(1, &record(9));
    let name = format!("run-guard triage {}", key().digest());
    check_by(&state, "other-app[bot]", &name, key().digest().as_str(), &text);
    {
        let mut state = state.borrow_mut();
        state.grant(REPO, "alice", run_guard::core::facts::Permission::Admin);
        state.add_token("alice", TokenSpec::personal("alice", "write-all".parse().unwrap()));
    }
    let github = InProcess::new(Rc::clone(&state), "alice");
    let ledger = ledger(&github);
    let probed = run(github.probe(&repo(), &ledger.probe(&key()))).unwrap();
    assert_eq!(ledger.claims(&key(), &probed).unwrap().len(), 1);
    let refused = run(ledger.create(&repo(), &key(), 2, &record(7), None));
    assert!(matches!(refused, Err(PortError::Denied { status: 403, .. })), "{refused:?}");
}

#[test]
fn a_check_run_of_the_key_without_a_number_leaves_the_key_unknown() {
    for text in ["", "claim", "claim 0\n`x`", "claim 01\n`x`", "Claim 1\n`x`", " claim 1\n`x`", "claim 1x"] {
        let state = Rc::new(RefCell::new(github(true)));
        let name = format!("run-guard triage {}", key().digest());
        check_by(&state, "github-actions[bot]", &name, key().digest().as_str(), text);
        let github = InProcess::new(Rc::clone(&state), TOKEN);
        let ledger = ledger(&github);
        let probed = run(github.probe(&repo(), &ledger.probe(&key()))).unwrap();
        let claims = ledger.claims(&key(), &probed);
        assert!(claims.as_ref().is_err_and(|why| why.contains("cannot be read")), "{text:?}: {claims:?}");
        let listed = run(ledger.candidates(&repo(), &key(), 1));
        assert!(matches!(listed, Err(PortError::Malformed { .. })), "{text:?}: {listed:?}");
    }
}

#[test]
fn lists_are_read_to_their_end_and_one_query_says_where_it_ends_before() {
    let state = Rc::new(RefCell::new(github(true)));
    let github = InProcess::new(Rc::clone(&state), TOKEN);
    let ledger = ledger(&github);
    for n in 1..=250 {
        run(ledger.create(&repo(), &key(), 1, &record(n), None)).unwrap();
    }
    let listed = run(ledger.candidates(&repo(), &key(), 1)).unwrap();
    assert_eq!(listed.len(), 250);
    assert!(matches!(&listed[0], ClaimRead::Readable(claim) if claim.record == record(1)), "the first is the oldest");
    assert_eq!(state.borrow().count(Op::ListCheckRuns), 3);
    let probed = run(github.probe(&repo(), &ledger.probe(&key()))).unwrap();
    assert!(ledger.claims(&key(), &probed).unwrap_err().contains("more check runs"));
    state.borrow_mut().now += TimeDelta::hours(1);
    for n in 251..=1000 {
        run(ledger.create(&repo(), &key(), 1, &record(n), None)).unwrap();
    }
    let listed = run(ledger.candidates(&repo(), &key(), 1));
    assert!(matches!(listed, Err(PortError::Malformed { .. })), "GitHub keeps no more than these: {listed:?}");
}

/// The ledger of a key without a commit, by what policy and input say.
#[test]
fn the_ledger_follows_from_policy_and_key() {
    use run_guard::core::claim::LedgerChoice::{self, Auto, Kind};
    use run_guard::core::claim::LedgerKind::{CheckRun, Label, Ref};
    let anchored = "ledger-anchor: \"7777777777777777777777777777777777777777\"\n";
    let capped = "max-runs-per-hour: 3\n";
    let cases: [(&str, Option<LedgerChoice>, Result<LedgerKind, &str>); 11] = [
        ("", None, Ok(Label)),
        ("ledger: ref", None, Ok(Ref)),
        ("ledger: auto", None, Ok(Label)),
        ("ledger: ref", Some(Auto), Ok(Label)),
        ("ledger: ref", Some(Kind(Label)), Ok(Label)),
        ("ledger: check-run", None, Err("needs a commit")),
        ("", Some(Kind(CheckRun)), Err("needs a commit")),
        (anchored, Some(Kind(CheckRun)), Ok(CheckRun)),
        (anchored, Some(Auto), Ok(Label)),
        (&[anchored, capped].concat(), Some(Kind(CheckRun)), Err("cannot count the runs")),
        (&[anchored, capped].concat(), Some(Kind(Ref)), Ok(Ref)),
    ];
    for (policy, asked, expected) in cases {
        let parsed: Policy = run_guard::config::parse(policy, "policy").unwrap();
        let key: Key = DIGEST_OF.parse().unwrap();
        match (parsed.ledger_of(&key, asked), expected) {
            (Err(why), Err(part)) => assert!(why.contains(part), "{policy}: {why}"),
            (found, expected) => assert_eq!(found.ok(), expected.ok(), "{policy}"),
        }
    }
}

#[test]
fn a_handle_names_the_anchor() {
    use run_guard::core::claim::Handle;
    let anchor = "7".repeat(40);
    let text = format!("check-run@{anchor}:{DIGEST_OF}#1.0a1b2c3d");
    let handle: Handle = text.parse().unwrap();
    assert_eq!(handle.anchor.as_ref().map(CommitId::as_str), Some(anchor.as_str()));
    assert_eq!(handle.to_string(), text);
    for bad in [
        format!("check-run@main:{DIGEST_OF}#1.0a1b2c3d"),
        format!("check-run@:{DIGEST_OF}#1.0a1b2c3d"),
        format!("check-run@{}:{DIGEST_OF}#1.0a1b2c3d", "A".repeat(40)),
        format!("checkrun:{DIGEST_OF}#1.0a1b2c3d"),
    ] {
        assert!(bad.parse::<Handle>().is_err(), "{bad}");
    }
}
