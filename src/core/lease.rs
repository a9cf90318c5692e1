//! The protocol by which a claim is made, as a pure state machine: answers in, actions out.
//!
//! Creation is create-if-absent on the server, and that answer alone decides a race. Two things blur it: an answer can
//! be lost, and a read can lag. So the machine never takes a read that shows nothing for proof that nothing is there,
//! and it tells its own claim by the nonce.
//!
//! Where the server makes any number of things alike, a number is won by election: every contender makes a candidate and
//! lists them until its own is among them, and the first has the number. That stands for create-if-absent as long as
//! lists show writes in order.

use chrono::TimeDelta;

use super::claim::{Claim, ClaimRead, Owner};

/// How often a creation whose answer was lost is sent in all.
const CREATES: u8 = 3;

/// The pauses before the reads of a claim that must be there and does not show, in seconds.
const PAUSES: [i64; 6] = [0, 1, 2, 4, 8, 16];

/// How often the candidates are listed in vain before a creation whose answer was lost is sent again: a second candidate
/// is no harm, but people see it.
const LOOKS: u8 = 3;

/// What the server answered to the creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAnswer {
    /// It is made.
    Made,
    /// A claim of that number exists.
    Exists,
    /// The answer was lost: it may be made or not.
    Unknown,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the creation.
    Create,
    /// Read the claim by name, or list the candidates, after this pause.
    Read(TimeDelta),
    /// The claim is one's own.
    Won,
    /// Another owner has the claim.
    Lost(ClaimRead),
    /// It cannot be told whose the claim is; in a few words, why.
    GiveUp(&'static str),
}

/// One claim on its way, from the plan to the answer whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    owner: Owner,
    creates: u8,
    reads: usize,
    must_exist: bool,
    elected: bool,
    looks: u8,
    leftovers: Vec<Claim>,
}

impl Acquire {
    /// A claim that `owner` is about to create. The first thing to do is [`Next::Create`].
    pub const fn new(owner: Owner) -> Self {
        Self { owner, creates: 1, reads: 0, must_exist: false, elected: false, looks: 0, leftovers: Vec::new() }
    }

    /// The same where the number is won by election: reads go to [`Acquire::listed`].
    pub fn elected(owner: Owner) -> Self {
        Self { elected: true, ..Self::new(owner) }
    }

    /// Takes the answer to the creation.
    pub fn created(&mut self, answer: CreateAnswer) -> Next {
        match answer {
            CreateAnswer::Made if !self.elected => Next::Won,
            CreateAnswer::Made | CreateAnswer::Exists => {
                self.must_exist = true;
                self.read_again()
            }
            CreateAnswer::Unknown => self.read_again(),
        }
    }

    /// Takes what a read showed; `None`: nothing shows, or the read gave no answer.
    pub fn read(&mut self, seen: Option<ClaimRead>) -> Next {
        match seen {
            Some(ClaimRead::Readable(claim)) if claim.record.owner == self.owner => Next::Won,
            Some(other) => Next::Lost(other),
            None if self.must_exist => self.read_again(),
            // To send it again is safe: if the first one took effect, the server says that the claim exists, and then
            // the nonce tells whose it is.
            None if self.creates < CREATES => {
                self.creates += 1;
                Next::Create
            }
            None => Next::GiveUp("GitHub did not say whether the claim was made"),
        }
    }

    /// Takes what a list of the candidates showed, the one that has the number first; `None`: the list gave no answer.
    pub fn listed(&mut self, seen: Option<&[ClaimRead]>) -> Next {
        let is_own = |read: &ClaimRead| matches!(read, ClaimRead::Readable(claim) if claim.record.owner == self.owner);
        let candidates = seen.unwrap_or_default();
        let Some(first) = candidates.first().filter(|_| candidates.iter().any(is_own)) else {
            self.looks += 1;
            // A candidate that could not be looked for any more would be made for nothing.
            let again = !self.must_exist && self.looks.is_multiple_of(LOOKS) && self.reads < PAUSES.len();
            return if again { Next::Create } else { self.read_again() };
        };
        let kept = usize::from(is_own(first));
        let own = candidates.iter().skip(kept).filter(|read| is_own(read));
        self.leftovers = own
            .filter_map(|read| match read {
                ClaimRead::Readable(claim) => Some(claim.clone()),
                ClaimRead::Unreadable { .. } => None,
            })
            .collect();
        if kept == 1 { Next::Won } else { Next::Lost(first.clone()) }
    }

    /// One's own candidates that were not elected, to be given back as withdrawn. Nothing depends on that they are.
    pub fn leftovers(&self) -> &[Claim] {
        &self.leftovers
    }

    fn read_again(&mut self) -> Next {
        let Some(pause) = PAUSES.get(self.reads) else {
            return Next::GiveUp(if self.must_exist {
                "GitHub says that the claim exists, but does not show it"
            } else {
                "GitHub did not say whether the claim was made"
            });
        };
        self.reads += 1;
        Next::Read(TimeDelta::seconds(*pause))
    }
}

#[cfg(test)]
mod tests {
    use super::{Acquire, CreateAnswer, Next};
    use crate::core::claim::{Cause, Claim, ClaimRead, ClaimState, Nonce, Owner, Record, Thing};
    use chrono::{DateTime, TimeDelta};

    fn owner(bits: u64) -> Owner {
        Owner { run: 7, attempt: 1, nonce: Nonce::from_bits(bits) }
    }

    fn claim_of(owner: Owner) -> ClaimRead {
        let record = Record {
            owner,
            cause: Cause::First,
            rerun: None,
            opened_at: DateTime::UNIX_EPOCH,
            number: None,
            actor: None,
            state: ClaimState::Open,
        };
        ClaimRead::Readable(Claim { number: 1, thing: Thing::default(), record })
    }

    #[test]
    fn the_answer_to_the_creation_decides() {
        assert_eq!(Acquire::new(owner(1)).created(CreateAnswer::Made), Next::Won);
        let mut lost = Acquire::new(owner(1));
        assert_eq!(lost.created(CreateAnswer::Exists), Next::Read(TimeDelta::zero()));
        assert_eq!(lost.read(Some(claim_of(owner(2)))), Next::Lost(claim_of(owner(2))));
    }

    #[test]
    fn a_lost_answer_is_told_by_the_nonce() {
        let mut acquire = Acquire::new(owner(1));
        assert_eq!(acquire.created(CreateAnswer::Unknown), Next::Read(TimeDelta::zero()));
        assert_eq!(acquire.read(Some(claim_of(owner(1)))), Next::Won);
        let mut acquire = Acquire::new(owner(1));
        acquire.created(CreateAnswer::Unknown);
        assert_eq!(acquire.read(None), Next::Create);
        assert_eq!(acquire.created(CreateAnswer::Exists), Next::Read(TimeDelta::seconds(1)));
        assert_eq!(acquire.read(Some(claim_of(owner(1)))), Next::Won);
    }

    #[test]
    fn a_claim_that_exists_and_never_shows_is_neither_won_nor_free() {
        let mut acquire = Acquire::new(owner(1));
        let mut next = acquire.created(CreateAnswer::Exists);
        let mut reads = 0;
        while let Next::Read(_) = next {
            reads += 1;
            next = acquire.read(None);
        }
        assert_eq!(reads, 6);
        assert!(matches!(next, Next::GiveUp(_)));
    }

    #[test]
    fn a_creation_that_is_never_answered_ends() {
        let mut acquire = Acquire::new(owner(1));
        let mut creates = 1;
        let mut next = acquire.created(CreateAnswer::Unknown);
        loop {
            next = match next {
                Next::Read(_) => acquire.read(None),
                Next::Create => {
                    creates += 1;
                    acquire.created(CreateAnswer::Unknown)
                }
                _ => break,
            };
        }
        assert_eq!(creates, 3);
        assert!(matches!(next, Next::GiveUp(_)));
    }

    /// A candidate of the owner with these bits, as a check run with this id.
    fn candidate(id: u64, bits: u64) -> ClaimRead {
        match claim_of(owner(bits)) {
            ClaimRead::Readable(claim) => ClaimRead::Readable(Claim { thing: Thing(id.to_string()), ..claim }),
            unreadable @ ClaimRead::Unreadable { .. } => unreadable,
        }
    }

    fn broken(id: u64) -> ClaimRead {
        ClaimRead::Unreadable { number: 1, thing: Thing(id.to_string()), why: "it is no record".to_owned() }
    }

    fn leftovers(acquire: &Acquire) -> Vec<&str> {
        acquire.leftovers().iter().map(|claim| claim.thing.0.as_str()).collect()
    }

    #[test]
    fn the_first_candidate_is_elected_once_ones_own_is_listed() {
        let (mine, other) = (|id| candidate(id, 1), |id| candidate(id, 2));
        // What the list shows, who won, and which candidates of one's own are left over.
        let won = |candidates: Vec<ClaimRead>| (candidates, None);
        let lost = |candidates: Vec<ClaimRead>| {
            let to = candidates.first().cloned();
            (candidates, to)
        };
        let cases = [
            (won(vec![mine(5)]), vec![]),
            (won(vec![mine(5), other(6), broken(7)]), vec![]),
            (won(vec![mine(5), other(6), mine(7)]), vec!["7"]),
            (lost(vec![other(4), mine(5)]), vec!["5"]),
            (lost(vec![broken(4), mine(5)]), vec!["5"]),
            (lost(vec![other(4), mine(5), other(6), mine(7)]), vec!["5", "7"]),
        ];
        for ((candidates, to), left) in cases {
            for answer in [CreateAnswer::Made, CreateAnswer::Unknown] {
                let mut acquire = Acquire::elected(owner(1));
                assert_eq!(acquire.created(answer), Next::Read(TimeDelta::zero()));
                let next = acquire.listed(Some(&candidates));
                assert_eq!(next, to.clone().map_or(Next::Won, Next::Lost), "{candidates:?}");
                assert_eq!(leftovers(&acquire), left, "{candidates:?}");
            }
        }
    }

    #[test]
    fn no_list_elects_before_it_shows_ones_own() {
        let others = [candidate(4, 2), broken(6)];
        for seen in [None, Some(&[][..]), Some(&others[..])] {
            let mut acquire = Acquire::elected(owner(1));
            let mut next = acquire.created(CreateAnswer::Made);
            let mut reads = 0;
            while let Next::Read(_) = next {
                reads += 1;
                next = acquire.listed(seen);
            }
            assert_eq!(reads, 6);
            assert!(matches!(next, Next::GiveUp(_)), "{next:?}");
            assert_eq!(leftovers(&acquire), [""; 0]);
        }
    }

    #[test]
    fn a_candidate_whose_answer_was_lost_is_looked_for_before_another_is_made() {
        let mut acquire = Acquire::elected(owner(1));
        let mut looks = 0;
        let mut next = acquire.created(CreateAnswer::Unknown);
        while let Next::Read(_) = next {
            looks += 1;
            next = acquire.listed(Some(&[candidate(4, 2)]));
        }
        assert_eq!((looks, &next), (3, &Next::Create));
        // The first one shows after all.
        assert!(matches!(acquire.created(CreateAnswer::Made), Next::Read(_)));
        assert_eq!(acquire.listed(Some(&[candidate(5, 1), candidate(8, 1)])), Next::Won);
        assert_eq!(leftovers(&acquire), ["8"]);

        let mut acquire = Acquire::elected(owner(1));
        let (mut creates, mut next) = (1, acquire.created(CreateAnswer::Unknown));
        loop {
            next = match next {
                Next::Read(_) => acquire.listed(Some(&[])),
                Next::Create => {
                    creates += 1;
                    acquire.created(CreateAnswer::Unknown)
                }
                _ => break,
            };
        }
        assert_eq!(creates, 2);
        assert!(matches!(next, Next::GiveUp(_)), "{next:?}");
    }
}
