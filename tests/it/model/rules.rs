//! What the protocol says, as data, so that each rule can be broken on its own.

/// The primitive of GitHub that keeps claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    /// Unique names. A write goes to whatever has the name; a deletion names the thing's node id.
    Label,
    /// Unique names. A write must be a fast-forward of what its writer read; a deletion names what it deletes.
    Ref,
    /// No unique names: create, list until one's own is listed, and the lowest id of a number has it. Nothing is ever
    /// deleted.
    CheckRun,
}

/// Which check run of a number has the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Election {
    /// The one with the lowest id, whatever became of it.
    Lowest,
    /// The one with the lowest id among those that were not given back.
    LowestNotWithdrawn,
    /// The one with the lowest id among those without a conclusion.
    LowestLive,
}

/// How a sweeper says what it deletes or rewrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// By node id or old object id: what was made again is another thing.
    Id,
    /// By name: whatever has it now.
    Name,
}

/// Which time a sweep claim carries when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// One at which the claim is there: the server's, or one written after it was seen.
    There,
    /// The one at which its creation was sent, which may take effect later.
    Sent,
}

/// Which claims below its own a sweep deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lower {
    /// All of them: each is settled, or its owner was over when the next number was taken.
    All,
    /// Only those with an outcome.
    Settled,
}

/// What is read of a claim whose owner is over before it is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecondRead {
    /// The claim, by name, when its owner has been over for the grace.
    AfterGrace,
    /// The claim, by name, but it may have been read before its owner was over.
    Anytime,
    /// Nothing.
    Never,
}

/// When the evidence of what an abandoned claim's owner wrote was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// When its owner had been over for the grace.
    AfterGrace,
    /// With the first read, when its owner may still have been at work.
    FirstRead,
}

/// The rules. [`Rules::SAFE`] is the protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// For so many ticks what was read may still be acted upon; the write that follows takes effect by then or never.
    pub(super) read_age: u8,
    /// So many ticks after an owner's end its claim may be taken over. A write takes effect, and shows in every read,
    /// before the tick after the one in which its writer ended.
    pub(super) grace: u8,
    /// How many ticks a sweep holds the key before it deletes lower claims, and after that before it deletes its own.
    pub(super) sweep_waits: [u8; 2],
    pub(super) naming: Naming,
    pub(super) stamp: Stamp,
    pub(super) lower: Lower,
    pub(super) second_read: SecondRead,
    pub(super) evidence: Evidence,
    /// A claim whose owner is at work is left alone.
    pub(super) live_is_left_alone: bool,
    /// A new claim takes a new number.
    pub(super) numbers_are_new: bool,
    /// Each guard step has a nonce of its own.
    pub(super) own_nonce: bool,
    /// A number that exists and does not show is not free.
    pub(super) hidden_is_not_free: bool,
    /// Only who has a claim settles it.
    pub(super) losers_write_nothing: bool,
    /// A claim that a rerun opens records the rerun's id.
    pub(super) rerun_is_recorded: bool,
    /// A rerun must be newer than the last settlement.
    pub(super) rerun_is_newer: bool,
    pub(super) election: Election,
    /// A list that shows a check run shows every one with a lower id.
    pub(super) lists_in_order: bool,
    /// The times in records may be a tick early.
    pub(super) clocks_lag: bool,
    /// A number that does not show below one that does means that the answer is old: nothing is claimed on it.
    pub(super) gaps_stop: bool,
}

impl Rules {
    pub(super) const SAFE: Self = Self {
        read_age: 1,
        grace: 1,
        sweep_waits: [2, 2],
        naming: Naming::Id,
        stamp: Stamp::There,
        lower: Lower::All,
        second_read: SecondRead::AfterGrace,
        evidence: Evidence::AfterGrace,
        live_is_left_alone: true,
        numbers_are_new: true,
        own_nonce: true,
        hidden_is_not_free: true,
        losers_write_nothing: true,
        rerun_is_recorded: true,
        rerun_is_newer: true,
        election: Election::Lowest,
        lists_in_order: true,
        clocks_lag: false,
        gaps_stop: false,
    };
}
