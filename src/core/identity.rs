//! Who is who: self, agents, other bots and people.

use super::policy::Policy;

/// GitHub's type of an account, as payloads and the API give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// A person's account, or a machine user's.
    User,
    /// A GitHub App's account.
    Bot,
    /// An organisation.
    Organization,
    /// Anything else, or not said.
    Other,
}

impl ActorKind {
    /// From the `type` of REST and payloads or the `__typename` of GraphQL.
    pub fn parse(word: &str) -> Self {
        match word {
            "User" | "EnterpriseUserAccount" => Self::User,
            "Bot" => Self::Bot,
            "Organization" => Self::Organization,
            _ => Self::Other,
        }
    }
}

/// An account that did or wrote something. A deleted account is no actor: places hold `Option<Actor>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    /// The login as given, with or without `[bot]`.
    pub login: String,
    /// The account's type.
    pub kind: ActorKind,
    /// The account's numeric id, where it is known.
    pub id: Option<u64>,
}

impl Actor {
    /// An actor of which only login and type are known.
    pub fn new(login: impl Into<String>, kind: ActorKind) -> Self {
        Self { login: login.into(), kind, id: None }
    }

    /// Whether this account is the bot that `entry` names, with or without `[bot]`, ignoring case. An account that
    /// is not a Bot never is, whatever it is called.
    pub fn is_bot_named(&self, entry: &str) -> bool {
        self.kind == ActorKind::Bot && same_login(&self.login, entry)
    }
}

/// The login without a `[bot]` suffix, which REST writes and GraphQL leaves out.
pub fn bare_login(login: &str) -> &str {
    let cut = login.len().saturating_sub("[bot]".len());
    match (login.get(..cut), login.get(cut..)) {
        (Some(head), Some(tail)) if tail.eq_ignore_ascii_case("[bot]") => head,
        _ => login,
    }
}

/// Whether two logins name the same account, given that both are bots or both are people.
pub fn same_login(a: &str, b: &str) -> bool {
    bare_login(a).eq_ignore_ascii_case(bare_login(b))
}

/// Whether a login, of which no type is known, is written as a bot's.
pub fn is_written_as_bot(login: &str) -> bool {
    bare_login(login).len() != login.len()
}

/// What an account is to run-guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The bot whose token run-guard uses.
    SelfBot,
    /// An account listed under `agents`.
    Agent,
    /// A bot that is neither.
    OtherBot,
    /// A person.
    Person,
    /// No account is named, or its type says nothing.
    Unknown,
}

impl Who {
    /// Whether this is automation of any kind.
    pub const fn is_automation(self) -> bool {
        matches!(self, Self::SelfBot | Self::Agent | Self::OtherBot)
    }
}

/// Tells what an account is. `viewer` is the token's own login, if it could be read.
pub fn who(actor: Option<&Actor>, viewer: Option<&str>, policy: &Policy) -> Who {
    let Some(actor) = actor else { return Who::Unknown };
    if policy.agents.iter().any(|entry| is_listed(actor, entry)) {
        return Who::Agent;
    }
    match actor.kind {
        // GitHub's `viewer` keeps the suffix, so a token whose login has none is a person's, who may share a bot's name.
        ActorKind::Bot if viewer.is_some_and(|v| is_written_as_bot(v) && same_login(v, &actor.login)) => Who::SelfBot,
        ActorKind::Bot => Who::OtherBot,
        ActorKind::User => Who::Person,
        ActorKind::Organization | ActorKind::Other => Who::Unknown,
    }
}

/// Whether an entry of `agents` names this account. `name[bot]` names a Bot only; a plain name is a machine user or
/// a Bot.
fn is_listed(actor: &Actor, entry: &str) -> bool {
    match actor.kind {
        ActorKind::Bot => same_login(&actor.login, entry),
        _ => !is_written_as_bot(entry) && actor.login.eq_ignore_ascii_case(entry),
    }
}
