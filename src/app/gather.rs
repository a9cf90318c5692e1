//! Gathering: answers the core's questions through the ports, one request each.

use chrono::{DateTime, TimeDelta, Utc};

use super::World;
use crate::core::claim::ClaimRead;
use crate::core::facts::{Fact, Facts, Question, Window};
use crate::core::identity::{Who, who};
use crate::core::key::Key;
use crate::core::marker::Marker;
use crate::core::policy::Policy;
use crate::core::trigger::Trigger;
use crate::ledger::AnyLedger;
use crate::ports::{
    Clock, FactsQuery, FactsReply, GitHub, Ledger, PolicyRead, PortError, Probed, RepoName, WindowPage,
};

/// What has been gathered so far.
#[derive(Debug)]
pub struct Gathered<'a, G, C> {
    world: &'a World<'a, G, C>,
    /// Where the key's claims are.
    pub ledger: AnyLedger<'a, G>,
    repo: &'a RepoName,
    /// The facts.
    pub facts: Facts,
    /// Where the budget window goes on.
    window_next: Option<String>,
    /// GitHub's clock against one's own.
    offset: TimeDelta,
}

impl<'a, G: GitHub, C: Clock> Gathered<'a, G, C> {
    /// Nothing gathered yet.
    pub fn new(world: &'a World<'a, G, C>, ledger: AnyLedger<'a, G>, repo: &'a RepoName) -> Self {
        Self { world, ledger, repo, facts: Facts::default(), window_next: None, offset: TimeDelta::zero() }
    }

    /// The time by GitHub's clock as last seen, going on with one's own.
    pub fn now(&self) -> DateTime<Utc> {
        self.world.clock.now() + self.offset
    }

    fn note_time(&mut self) {
        if let Some(theirs) = self.world.github.server_time() {
            self.offset = theirs - self.world.clock.now();
        }
    }

    /// The one query for policy and facts and, at the same time, the permission of a person who asks. What the
    /// policy says of `anyone` is not known yet.
    pub async fn first_read(
        &mut self,
        trigger: &Trigger,
        key: &Key,
        anyone: bool,
        window: bool,
    ) -> Result<PolicyRead, PortError> {
        let query = FactsQuery {
            repo: self.repo.clone(),
            number: trigger.resource.number(),
            claims: self.ledger.probe(key),
            window: self.ledger.listing().filter(|_| window),
            written: None,
        };
        let asker = trigger.rerunner().or_else(|| trigger.sender.clone());
        let person = (!anyone && who(asker.as_ref(), None, &Policy::default()) == Who::Person)
            .then(|| asker.map(|a| a.login))
            .flatten();
        let (reply, permission) = tokio::join!(self.world.github.facts(&query), async {
            match &person {
                Some(login) => Some(self.world.github.permission(self.repo, login).await),
                None => None,
            }
        });
        self.note_time();
        if let (Some(login), Some(permission)) = (&person, permission) {
            self.facts.set_permission(login, fact(permission));
        }
        let FactsReply { viewer, policy, repository, resource, claims, window, .. } = reply?;
        self.facts.viewer = viewer;
        self.facts.repository = repository;
        self.facts.resource = resource;
        self.set_claims(key, &claims);
        match window {
            Fact::Unasked => {}
            Fact::Unknown(why) => self.facts.window = Fact::Unknown(why),
            Fact::Known(page) => self.add_window(Window::default(), &page),
        }
        Ok(policy)
    }

    fn set_claims(&mut self, key: &Key, probed: &Fact<Probed>) {
        self.facts.claims = match probed {
            Fact::Unasked => Fact::Unasked,
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
            Fact::Known(probed) => match self.ledger.claims(key, probed) {
                Ok(claims) => Fact::Known(claims),
                Err(why) => Fact::Unknown(why),
            },
        };
    }

    fn add_window(&mut self, mut window: Window, page: &WindowPage) {
        self.ledger.add_to_window(&mut window, page);
        self.window_next = page.next().map(str::to_owned);
        self.facts.window = Fact::Known(window);
    }

    /// Looks into another ledger from here on: the policy names it. What was read of the first one is forgotten.
    pub async fn switch_to(&mut self, ledger: AnyLedger<'a, G>, window: bool) {
        self.ledger = ledger;
        self.facts.claims = Fact::Unasked;
        self.facts.window = Fact::Unasked;
        self.window_next = None;
        if let Some(listing) = self.ledger.listing().filter(|_| window) {
            match self.world.github.window_page(self.repo, listing, None).await {
                Ok(page) => self.add_window(Window::default(), &page),
                Err(error) => self.facts.window = Fact::Unknown(error.to_string()),
            }
        }
    }

    /// A claim of the key that an earlier read did not show. Whatever was asked about the highest one is asked anew.
    pub fn now_shows(&mut self, read: ClaimRead) {
        if let Fact::Known(claims) = &mut self.facts.claims {
            claims.insert(read.number(), read);
        }
        self.facts.holder = Fact::Unasked;
        self.facts.second_read = Fact::Unasked;
    }

    /// Reads the claims of another key or ledger than those that the first read asked for: the policy changed them.
    pub async fn read_claims(&mut self, key: &Key) {
        let probed = self.world.github.probe(self.repo, &self.ledger.probe(key)).await;
        self.note_time();
        self.set_claims(key, &fact(probed));
    }

    /// The budget window anew, page by page back to `since`.
    pub async fn fresh_window(&self, since: DateTime<Utc>) -> Result<Window, PortError> {
        let mut window = Window::default();
        let Some(listing) = self.ledger.listing() else { return Err(no_window()) };
        let mut page = self.world.github.window_page(self.repo, listing, None).await?;
        loop {
            self.ledger.add_to_window(&mut window, &page);
            match (page.next(), window.complete_since) {
                (Some(next), Some(reached)) if reached > since => {
                    page = self.world.github.window_page(self.repo, listing, Some(next)).await?;
                }
                _ => return Ok(window),
            }
        }
    }

    /// Answers one question, with a value or as unknown.
    pub async fn answer(&mut self, question: &Question, trigger: &Trigger, key: &Key) {
        match question {
            // The first read answered it, or failed as a whole; a part that stayed unasked was not to be had.
            Question::Facts => self.close_unasked(),
            Question::Permission(login) => {
                let permission = fact(self.world.github.permission(self.repo, login).await);
                self.facts.set_permission(login, permission);
            }
            Question::HolderRun(id) => {
                let state = fact(self.world.github.run(self.repo, *id).await);
                if *id == trigger.run.run {
                    self.facts.own_run = state;
                } else {
                    self.facts.holder = state;
                }
            }
            Question::SecondRead(number) => self.read_again(trigger, key, *number).await,
            Question::MoreWindow => self.more_window().await,
            Question::MarkerClaim { .. } => {
                self.facts.marker_claim = match Marker::find(&trigger.text) {
                    Some(marker) => fact(self.ledger.read(self.repo, &marker.key, marker.claim).await),
                    None => Fact::Known(None),
                };
            }
            Question::WaitUntil(at) => {
                self.world.clock.sleep_until(*at - self.offset).await;
                self.facts.holder = Fact::Unasked;
            }
        }
        self.note_time();
    }

    /// Reads one claim once more, by name, and with it the resource: what its owner wrote just before its end is
    /// evidence that an earlier read may not show.
    async fn read_again(&mut self, trigger: &Trigger, key: &Key, number: u32) {
        let query = FactsQuery {
            repo: self.repo.clone(),
            number: trigger.resource.number(),
            claims: self.ledger.probe_one(key, number),
            window: None,
            written: None,
        };
        match self.world.github.facts(&query).await {
            Ok(FactsReply { resource, claims, .. }) => {
                self.facts.resource = resource;
                self.facts.second_read = match claims {
                    Fact::Known(probed) => match self.ledger.claims(key, &probed) {
                        Ok(mut claims) => Fact::Known(claims.remove(&number)),
                        Err(why) => Fact::Unknown(why),
                    },
                    Fact::Unknown(why) => Fact::Unknown(why),
                    Fact::Unasked => Fact::Unknown("GitHub's answer did not hold it".to_owned()),
                };
            }
            Err(error) => self.facts.second_read = Fact::Unknown(error.to_string()),
        }
    }

    /// Looks at the resource and the key's claims anew, as at first: its holder may have ended. If nothing is to be
    /// had, what was read before stays.
    pub async fn look_again(&mut self, trigger: &Trigger, key: &Key) {
        let query = FactsQuery {
            repo: self.repo.clone(),
            number: trigger.resource.number(),
            claims: self.ledger.probe(key),
            window: None,
            written: None,
        };
        if let Ok(FactsReply { resource, claims, .. }) = self.world.github.facts(&query).await {
            self.facts.resource = resource;
            self.set_claims(key, &claims);
            self.facts.second_read = Fact::Unasked;
        }
        self.facts.holder = Fact::Unasked;
        self.note_time();
    }

    async fn more_window(&mut self) {
        let Fact::Known(window) = std::mem::take(&mut self.facts.window) else { return };
        let Some(next) = self.window_next.take() else {
            self.facts.window = Fact::Unknown("the list of labels ended before the window's start".to_owned());
            return;
        };
        let Some(listing) = self.ledger.listing() else { return };
        match self.world.github.window_page(self.repo, listing, Some(&next)).await {
            Ok(page) => self.add_window(window, &page),
            Err(error) => self.facts.window = Fact::Unknown(error.to_string()),
        }
    }

    /// Whatever was not told is unknown.
    pub fn close_unasked(&mut self) {
        let why = || "GitHub's answer did not hold it".to_owned();
        let facts = &mut self.facts;
        if facts.viewer == Fact::Unasked {
            facts.viewer = Fact::Unknown(why());
        }
        if facts.repository == Fact::Unasked {
            facts.repository = Fact::Unknown(why());
        }
        if facts.resource == Fact::Unasked {
            facts.resource = Fact::Unknown(why());
        }
        if facts.claims == Fact::Unasked {
            facts.claims = Fact::Unknown(why());
        }
        if facts.window == Fact::Unasked {
            facts.window = Fact::Unknown(why());
        }
    }
}

/// The ledger's claims cannot be listed across keys, which a policy with a cap over a time is refused for.
fn no_window() -> PortError {
    PortError::Malformed { request: "a list of all claims".to_owned(), why: "this ledger has none".to_owned() }
}

/// What a request answered, as a fact.
fn fact<T>(result: Result<T, PortError>) -> Fact<T> {
    match result {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}
