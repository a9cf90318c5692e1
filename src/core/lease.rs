//! The protocol by which a claim is made, as a pure state machine: answers in, actions out.
//!
//! Creation is create-if-absent on the server, and that answer alone decides a race. Two things blur it: an answer can
//! be lost, and a read can lag. So the machine never takes a read that shows nothing for proof that nothing is there,
//! and it tells its own claim by the nonce.

use chrono::TimeDelta;

use super::claim::{ClaimRead, Owner};

/// How often a creation whose answer was lost is sent in all.
const CREATES: u8 = 3;

/// The pauses before the reads of a claim that must be there and does not show, in seconds.
const PAUSES: [i64; 6] = [0, 1, 2, 4, 8, 16];

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
    /// Read the claim by name, after this pause.
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
}

impl Acquire {
    /// A claim that `owner` is about to create. The first thing to do is [`Next::Create`].
    pub const fn new(owner: Owner) -> Self {
        Self { owner, creates: 1, reads: 0, must_exist: false }
    }

    /// Takes the answer to the creation.
    pub fn created(&mut self, answer: CreateAnswer) -> Next {
        match answer {
            CreateAnswer::Made => Next::Won,
            CreateAnswer::Exists => {
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

    fn read_again(&mut self) -> Next {
        let Some(pause) = PAUSES.get(self.reads) else {
            return Next::GiveUp("GitHub says that the claim exists, but does not show it");
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
}
