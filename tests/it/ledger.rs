//! The conformance suite of the ledgers: one list of checks, over every ledger, on the embedded GitHub in process and
//! again through the client over loopback HTTP.

mod check_run;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, LedgerKind, MAX_CLAIM_NUMBER, Nonce, Outcome, Owner, Record, RerunId,
    Settlement, Thing, label_name, ref_name,
};
use run_guard::core::facts::{Claims, Window};
use run_guard::core::key::{CommitId, Key};
use run_guard::github::{Client, Hosts, Token};
use run_guard::ledger::AnyLedger;
use run_guard::ports::{Created, FactsQuery, GitHub, Ledger, PortError, RepoName, WindowPage};
use run_guard::sim::http::Server;
use run_guard::sim::port::InProcess;
use run_guard::sim::{CheckRow, Fault, ItemSpec, Op, Planned, State, TokenSpec};

use crate::support::start_server;

const REPO: &str = "acme/app";
const TOKEN: &str = "ghs_ledger";

fn now() -> DateTime<Utc> {
    "2026-03-02T09:00:00Z".parse().unwrap()
}

fn key() -> Key {
    "github.com/42/issue/731/triage".parse().unwrap()
}

fn other_key() -> Key {
    "github.com/42/issue/732/triage".parse().unwrap()
}

/// A repository and a token that may write to the ledger, or one that may only read.
fn github(may_write: bool) -> State {
    let mut state = State::new(now());
    state.add_repo(REPO, 42);
    state.make_private(REPO);
    state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(731));
    let word = if may_write { "write" } else { "read" };
    let grants = format!("contents: {word}, issues: {word}, checks: {word}");
    state.add_token(TOKEN, TokenSpec::built_in(REPO, grants.parse().unwrap()));
    state
}

/// The commit for claims of a key that names none: the tip of the default branch.
fn anchor(kind: LedgerKind) -> Option<CommitId> {
    (kind == LedgerKind::CheckRun).then(|| format!("{:040x}", 42).parse().unwrap())
}

fn record(run: u64) -> Record {
    Record {
        owner: Owner { run, attempt: 1, nonce: Nonce::from_bits(run) },
        cause: Cause::First,
        rerun: None,
        opened_at: now(),
        number: Some(731),
        actor: Some(7),
        state: ClaimState::Open,
    }
}

fn settled(run: u64) -> Record {
    let settlement =
        Settlement { outcome: Outcome::Completed, at: now(), cost_cents: Some(12), result_comment: Some(99) };
    Record { state: ClaimState::Settled(settlement), ..record(run) }
}

/// The embedded GitHub behind one of its faces, to look at and to change between requests.
trait Face {
    fn edit<T>(&self, change: impl FnOnce(&mut State) -> T) -> T;
}

struct Process(Rc<RefCell<State>>);

impl Face for Process {
    fn edit<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.borrow_mut())
    }
}

impl Face for Server {
    fn edit<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state())
    }
}

/// A ledger under test.
struct Bench<'a, G, F> {
    ledger: AnyLedger<'a, G>,
    github: &'a G,
    face: &'a F,
    repo: RepoName,
    key: Key,
}

impl<G: GitHub, F: Face> Bench<'_, G, F> {
    async fn create(&self, number: u32, record: &Record) -> Result<Created, PortError> {
        let before = self.probe().await;
        let after = before.last_key_value().and_then(|(_, read)| match read {
            ClaimRead::Readable(claim) => Some(claim.clone()),
            ClaimRead::Unreadable { .. } => None,
        });
        let made = self.ledger.create(&self.repo, &self.key, number, record, after.as_ref()).await?;
        self.elected(&self.key, number, record, made).await
    }

    /// What an election makes of a candidate: made if it has the number, else given back.
    async fn elected(&self, key: &Key, number: u32, record: &Record, made: Created) -> Result<Created, PortError> {
        let Created::Made(thing) = &made else { return Ok(made) };
        if !self.ledger.elects() {
            return Ok(made);
        }
        let first = self.ledger.candidates(&self.repo, key, number).await?.remove(0);
        if matches!(&first, ClaimRead::Readable(claim) if claim.thing == *thing) {
            return Ok(made);
        }
        let own = Claim { number, thing: thing.clone(), record: record.clone() };
        let settlement = Settlement { outcome: Outcome::Withdrawn, at: now(), cost_cents: None, result_comment: None };
        let withdrawn = Record { state: ClaimState::Settled(settlement), ..record.clone() };
        self.ledger.rewrite(&self.repo, key, &own, &withdrawn).await?;
        Ok(Created::Exists)
    }

    async fn made(&self, number: u32, record: &Record) -> Claim {
        match self.create(number, record).await.unwrap() {
            Created::Made(thing) => Claim { number, thing, record: record.clone() },
            Created::Exists => panic!("claim {number} exists"),
        }
    }

    async fn read(&self, number: u32) -> Option<ClaimRead> {
        self.ledger.read(&self.repo, &self.key, number).await.unwrap()
    }

    /// What is read of a claim, without the identity of what holds it, which the answers to a creation need not tell.
    async fn record(&self, number: u32) -> Option<Record> {
        match self.read(number).await? {
            ClaimRead::Readable(claim) => Some(claim.record),
            ClaimRead::Unreadable { why, .. } => panic!("claim {number} cannot be read: {why}"),
        }
    }

    async fn probe(&self) -> Claims {
        let probed = self.github.probe(&self.repo, &self.ledger.probe(&self.key)).await.unwrap();
        self.ledger.claims(&self.key, &probed).unwrap()
    }

    /// The claims and the budget window as the facts query shows them.
    async fn facts(&self) -> (Claims, Option<Window>) {
        let query = FactsQuery {
            repo: self.repo.clone(),
            number: Some(731),
            claims: self.ledger.probe(&self.key),
            window: self.ledger.listing(),
            written: None,
        };
        let reply = self.github.facts(&query).await.unwrap();
        let claims = self.ledger.claims(&self.key, reply.claims.known().unwrap()).unwrap();
        let window = self.ledger.listing().map(|_| {
            let mut window = Window::default();
            self.ledger.add_to_window(&mut window, reply.window.known().unwrap());
            window
        });
        (claims, window)
    }

    /// The request whose answer decides a race.
    fn creation(&self) -> Op {
        match self.ledger.kind() {
            LedgerKind::Label => Op::CreateLabel,
            LedgerKind::CheckRun => Op::CreateCheckRun,
            LedgerKind::Ref => Op::CreateRef,
        }
    }

    /// Damages the record of a claim of the key behind the ledger's back.
    fn damage(&self, number: u32) {
        let digest = self.key.digest();
        self.face.edit(|state| match self.ledger.kind() {
            LedgerKind::Label => {
                let name = label_name(self.key.task(), &digest, number);
                state.edit_repo(REPO, |repo| {
                    let label = repo.labels.values_mut().find(|label| label.name == name).unwrap();
                    label.description = Some("mine now".to_owned());
                });
            }
            LedgerKind::CheckRun => state.edit_repo(REPO, |repo| {
                let text = |check: &CheckRow| check.said.text.clone().unwrap_or_default();
                let mut of = repo.checks.values_mut();
                let check = of.find(|check| text(check).starts_with(&format!("claim {number}\n"))).unwrap();
                check.said.text = Some(format!("claim {number}\nmine now"));
            }),
            LedgerKind::Ref => {
                let tip = state.refs(REPO, &ref_name(&digest, number)).remove(0).oid;
                state.add_commit(REPO, &"d".repeat(40), Some(&tip), "mine now");
                state.set_ref(REPO, &ref_name(&digest, number), &"d".repeat(40));
            }
        });
    }
}

async fn a_claim_is_made_once<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    assert_eq!(bench.probe().await, Claims::new());
    assert_eq!(bench.read(1).await, None);
    let first = bench.made(1, &record(7)).await;
    assert_eq!(bench.create(1, &record(8)).await.unwrap(), Created::Exists);
    assert_eq!(bench.record(1).await.unwrap(), record(7), "the second creation changed nothing");
    let claims = bench.probe().await;
    let [ClaimRead::Readable(seen)] = &claims.values().cloned().collect::<Vec<_>>()[..] else { panic!("{claims:?}") };
    assert_eq!((seen.number, &seen.record), (1, &first.record));
    assert!(seen.thing != Thing::default(), "what holds a claim is known");
    assert_eq!(first.thing, seen.thing, "the creation and the read tell the same thing");
}

async fn what_is_written_is_read_as_it_is<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    for number in 1..=3 {
        let mut record = record(u64::from(number));
        record.cause = if number > 1 { Cause::Rerun } else { Cause::First };
        record.rerun = (number > 1).then_some(RerunId::Attempt(7, number));
        bench.made(number, &record).await;
        assert_eq!(bench.record(number).await.unwrap(), record);
    }
    let (facts, window) = bench.facts().await;
    assert_eq!(facts, bench.probe().await, "the facts query and a probe show the same");
    assert_eq!(facts.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    let Some(window) = window else { return };
    let mut numbers: Vec<_> = window.claims.iter().map(|c| c.claim.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(window.claims.iter().all(|c| c.task == "triage" && c.digest == key().digest().as_str()));
    assert_eq!((window.complete_since, window.unreadable), (None, vec![]));
}

async fn an_outcome_is_written_into_ones_own_claim_alone<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    bench.made(1, &record(7)).await;
    bench.made(2, &record(8)).await;
    let Some(ClaimRead::Readable(claim)) = bench.read(1).await else { panic!("a claim") };
    for _ in 0..2 {
        // An outcome whose answer was lost is written once more, and that changes nothing.
        bench.ledger.rewrite(&bench.repo, &bench.key, &claim, &settled(7)).await.unwrap();
    }
    assert_eq!(bench.record(1).await.unwrap(), settled(7));
    assert_eq!(bench.record(2).await.unwrap(), record(8));
}

async fn keys_do_not_mix<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    bench.made(1, &record(7)).await;
    let other = other_key();
    let made = bench.ledger.create(&bench.repo, &other, 1, &record(8), None).await.unwrap();
    assert!(matches!(made, Created::Made(_)));
    assert_eq!(bench.record(1).await.unwrap(), record(7));
    let probed = bench.github.probe(&bench.repo, &bench.ledger.probe(&other)).await.unwrap();
    let claims = bench.ledger.claims(&other, &probed).unwrap();
    assert_eq!(claims.len(), 1);
    // What was found for one key holds nothing of another.
    assert_eq!(bench.ledger.claims(&bench.key, &probed).unwrap(), Claims::new());
}

async fn a_claim_that_cannot_be_read_is_never_free<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    bench.made(1, &record(7)).await;
    bench.damage(1);
    assert!(matches!(bench.read(1).await, Some(ClaimRead::Unreadable { number: 1, .. })));
    assert!(matches!(bench.probe().await.get(&1), Some(ClaimRead::Unreadable { .. })));
    assert_eq!(bench.create(1, &record(8)).await.unwrap(), Created::Exists);
    let (_, window) = bench.facts().await;
    assert!(window.is_none_or(|window| window.unreadable.len() == 1), "the budget knows that it does not know");
}

async fn the_highest_number_is_seen_alone<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    bench.made(MAX_CLAIM_NUMBER, &record(7)).await;
    assert_eq!(bench.probe().await.keys().copied().collect::<Vec<_>>(), [MAX_CLAIM_NUMBER]);
}

async fn a_lost_answer_is_told_by_the_nonce<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    for (number, effect) in [(1, true), (2, false)] {
        for (n, fault) in [Fault::Lost { effect }, Fault::Server { status: 502, effect }].into_iter().enumerate() {
            let number = number + 2 * u32::try_from(n).unwrap();
            bench.face.edit(|state| state.plan(Planned::next(bench.creation(), fault)));
            let error = bench.create(number, &record(7)).await.unwrap_err();
            assert!(matches!(error, PortError::Ambiguous { .. }), "{error:?}");
            let owner = bench.record(number).await.map(|record| record.owner);
            assert_eq!(owner, effect.then(|| record(7).owner));
            // To ask again is safe.
            let again = bench.create(number, &record(7)).await.unwrap();
            assert_eq!(matches!(again, Created::Exists), effect);
            assert_eq!(bench.record(number).await.unwrap(), record(7));
        }
    }
}

async fn what_is_refused_says_so<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    let error = bench.create(1, &record(7)).await.unwrap_err();
    let PortError::Denied { status: 403, message, .. } = &error else { panic!("{error:?}") };
    assert_eq!(message, "Resource not accessible by integration");
    assert!(bench.ledger.permission().ends_with(": write"));
    assert_eq!(bench.probe().await, Claims::new());
}

async fn the_window_is_paged_and_knows_how_far_it_is_whole<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    let Some(listing) = bench.ledger.listing() else { return };
    let claims: u64 = 120;
    for n in 0..claims {
        let key: Key = format!("github.com/42/issue/{}/triage", 1000 + n).parse().unwrap();
        bench.ledger.create(&bench.repo, &key, 1, &record(n), None).await.unwrap();
        bench.face.edit(|state| state.now += TimeDelta::seconds(10));
    }
    let first = bench.github.window_page(&bench.repo, listing, None).await.unwrap();
    let mut window = Window::default();
    bench.ledger.add_to_window(&mut window, &first);
    assert_eq!(window.claims.len(), 100);
    assert!(window.complete_since.is_some(), "more is to come");
    let next = bench.github.window_page(&bench.repo, listing, first.next()).await.unwrap();
    bench.ledger.add_to_window(&mut window, &next);
    assert_eq!(WindowPage::next(&next), None);
    assert_eq!((window.claims.len(), window.complete_since), (120, None));
}

async fn a_deletion_is_of_the_very_thing_that_was_read<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    let delete = async |claims: &[ClaimRead]| bench.ledger.delete(&bench.repo, &bench.key, claims).await;
    for number in 1..=4 {
        bench.made(number, &record(u64::from(number))).await;
    }
    bench.damage(3);
    let before: Vec<_> = bench.probe().await.into_values().collect();
    if bench.ledger.sweep_listing().is_none() {
        assert!(delete(&before).await.is_err());
        assert_eq!(bench.probe().await.len(), 4);
        return;
    }
    delete(&[]).await.unwrap();
    // Claims that can be read and those that cannot are deleted alike; the others stay.
    delete(&before[..3]).await.unwrap();
    assert_eq!(bench.probe().await.into_keys().collect::<Vec<_>>(), [4]);
    // What is gone already is fine, also beside something that is not, and also if the answer was lost.
    bench.face.edit(|state| state.plan(Planned::next(Op::Mutation, Fault::Lost { effect: true })));
    assert!(matches!(delete(&before).await, Err(PortError::Ambiguous { .. })));
    delete(&before).await.unwrap();
    assert_eq!(bench.probe().await, Claims::new());
    // A claim that was made again under the number of a deleted one is another thing, and stays.
    let again = record(77);
    bench.ledger.create(&bench.repo, &bench.key, 4, &again, None).await.unwrap();
    delete(&before).await.unwrap();
    assert_eq!(bench.record(4).await, Some(again));
    assert_eq!(bench.probe().await.len(), 1);
}

async fn a_deletion_that_is_not_granted_is_refused<G: GitHub, F: Face>(bench: &Bench<'_, G, F>) {
    if bench.ledger.sweep_listing().is_none() {
        return;
    }
    let digest = bench.key.digest();
    bench.face.edit(|state| {
        assert!(state.add_label(REPO, &label_name(bench.key.task(), &digest, 1), &record(7).encode()));
        state.set_ref(REPO, &ref_name(&digest, 1), &state.repo(REPO).unwrap().head_sha.clone().unwrap());
    });
    let claims: Vec<_> = bench.probe().await.into_values().collect();
    assert_eq!(claims.len(), 1);
    let refused = bench.ledger.delete(&bench.repo, &bench.key, &claims).await;
    assert!(matches!(refused, Err(PortError::Denied { .. })), "{refused:?}");
    assert_eq!(bench.probe().await.len(), 1);
}

/// Runs a check over every ledger and both faces.
macro_rules! conforms {
    ($($check:ident: $may_write:expr,)*) => {
        $(mod $check {
            use super::*;

            #[tokio::test]
            async fn in_process() {
                for kind in LedgerKind::ALL {
                    let state = Rc::new(RefCell::new(github($may_write)));
                    let github = InProcess::new(Rc::clone(&state), TOKEN);
                    let face = Process(state);
                    super::$check(&bench(kind, &github, &face)).await;
                }
            }

            #[tokio::test]
            async fn over_http() {
                for kind in LedgerKind::ALL {
                    let server = start_server(github($may_write)).await;
                    let hosts = Hosts::new(
                        Some(&server.base_url()),
                        Some(&server.graphql_url()),
                        Some("https://github.com"),
                    )
                    .unwrap();
                    let github = Client::new(hosts, Token::new(TOKEN).unwrap(), Duration::from_secs(30), now).unwrap();
                    super::$check(&bench(kind, &github, &server)).await;
                }
            }
        })*
    };
}

fn bench<'a, G: GitHub, F: Face>(kind: LedgerKind, github: &'a G, face: &'a F) -> Bench<'a, G, F> {
    Bench {
        ledger: AnyLedger::new(kind, anchor(kind), github),
        github,
        face,
        repo: RepoName::parse(REPO).unwrap(),
        key: key(),
    }
}

conforms! {
    a_claim_is_made_once: true,
    what_is_written_is_read_as_it_is: true,
    an_outcome_is_written_into_ones_own_claim_alone: true,
    keys_do_not_mix: true,
    a_claim_that_cannot_be_read_is_never_free: true,
    the_highest_number_is_seen_alone: true,
    a_lost_answer_is_told_by_the_nonce: true,
    a_deletion_is_of_the_very_thing_that_was_read: true,
    a_deletion_that_is_not_granted_is_refused: false,
    what_is_refused_says_so: false,
    the_window_is_paged_and_knows_how_far_it_is_whole: true,
}

/// A key whose facts were not read is unknown, never free.
#[test]
fn a_ledger_that_sees_more_than_there_can_be_does_not_say_that_it_sees_all() {
    let state = Rc::new(RefCell::new(github(true)));
    for n in 1..=150 {
        state.borrow_mut().set_ref(REPO, &ref_name(&key().digest(), n), &format!("{:040x}", 42));
    }
    let github = InProcess::new(Rc::clone(&state), TOKEN);
    let ledger = AnyLedger::new(LedgerKind::Ref, None, &github);
    let repo = RepoName::parse(REPO).unwrap();
    let probed = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(github.probe(&repo, &ledger.probe(&key())))
        .unwrap();
    let Err(why) = ledger.claims(&key(), &probed) else { panic!("it says that it sees all") };
    assert!(why.contains("more refs"), "{why}");
}
