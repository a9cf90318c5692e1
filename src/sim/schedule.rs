//! A deterministic executor for simulated runs: one thread, virtual time, and one turn at a time.
//!
//! A task waits in two ways only: for its turn ([`Scheduler::turn`]) and for a time ([`Clock::sleep_until`]). Each
//! request to the embedded GitHub is a turn, so runs that start at the same instant interleave call by call. Who is
//! next is decided by the [`Order`] alone, and time goes on only when all who could have a turn have had it: the same
//! order gives the same story, whatever the machine.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::{DateTime, Utc};

use crate::ports::Clock;

/// Who is next where several could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whoever has waited longest.
    Fair,
    /// Whoever a random sequence says, which this number starts.
    Seed(u64),
}

/// The schedule did not come to an end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulation was stopped after {turns} turns, at {}: something in it goes on for ever", at.format("%Y-%m-%d %H:%M:%S UTC"))]
pub struct TooManyTurns {
    /// How many turns there were.
    pub turns: u64,
    /// The virtual time that was reached.
    pub at: DateTime<Utc>,
}

type TaskId = u64;
type Ticket = u64;

struct Task {
    name: String,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

struct Inner {
    now: DateTime<Utc>,
    dice: Option<Dice>,
    next_task: TaskId,
    next_ticket: Ticket,
    /// Who could have a turn now, those who have waited longest first.
    ready: VecDeque<(Ticket, TaskId)>,
    /// Who waits for a time.
    asleep: BTreeMap<(DateTime<Utc>, Ticket), TaskId>,
    /// The ticket whose turn it is.
    granted: Option<Ticket>,
    /// The task that is being polled.
    current: Option<TaskId>,
    /// Tasks that were added since the last turn.
    added: Vec<(TaskId, Task)>,
}

/// The scheduler. Clones are handles to the same one.
#[derive(Clone)]
pub struct Scheduler(Rc<RefCell<Inner>>);

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("now", &self.0.borrow().now).finish_non_exhaustive()
    }
}

impl Scheduler {
    /// A scheduler with no task, whose time starts at `now`.
    pub fn new(now: DateTime<Utc>, order: Order) -> Self {
        let dice = match order {
            Order::Fair => None,
            Order::Seed(seed) => Some(Dice(seed)),
        };
        Self(Rc::new(RefCell::new(Inner {
            now,
            dice,
            next_task: 0,
            next_ticket: 0,
            ready: VecDeque::new(),
            asleep: BTreeMap::new(),
            granted: None,
            current: None,
            added: Vec::new(),
        })))
    }

    /// Adds a task. It gets its first turn at the present time.
    pub fn spawn(&self, name: impl Into<String>, future: impl Future<Output = ()> + 'static) {
        let mut inner = self.0.borrow_mut();
        let id = inner.next_task;
        inner.next_task += 1;
        inner.added.push((id, Task { name: name.into(), future: Box::pin(future) }));
        let ticket = inner.ticket();
        inner.ready.push_back((ticket, id));
    }

    /// Waits for the task's next turn.
    pub fn turn(&self) -> Wait {
        Wait { inner: Rc::clone(&self.0), until: None, ticket: None }
    }

    /// Gives turns until every task has ended or waits for something that never comes, such as an answer to a caller
    /// that is dead. The names of those that still wait are the result.
    ///
    /// # Errors
    ///
    /// Not all ended within `most` turns.
    pub fn run(&self, most: u64) -> Result<Vec<String>, TooManyTurns> {
        let mut tasks: BTreeMap<TaskId, Task> = BTreeMap::new();
        let mut turns = 0;
        loop {
            tasks.extend(self.0.borrow_mut().added.drain(..));
            let Some((ticket, id)) = self.next() else { break };
            if turns == most {
                return Err(TooManyTurns { turns, at: self.now() });
            }
            turns += 1;
            let Some(task) = tasks.get_mut(&id) else { continue };
            {
                let mut inner = self.0.borrow_mut();
                inner.granted = Some(ticket);
                inner.current = Some(id);
            }
            let polled = task.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                tasks.remove(&id);
            }
            let mut inner = self.0.borrow_mut();
            inner.granted = None;
            inner.current = None;
        }
        // A dropped task gives back its tickets, which borrows the scheduler anew: so none is borrowed here.
        Ok(tasks.into_values().map(|task| task.name).collect())
    }

    /// Whose turn it is next. If nobody could have one, time goes on to when somebody can.
    fn next(&self) -> Option<(Ticket, TaskId)> {
        let mut inner = self.0.borrow_mut();
        if inner.ready.is_empty() {
            let ((at, _), _) = inner.asleep.first_key_value()?;
            inner.now = (*at).max(inner.now);
            let now = inner.now;
            while let Some(entry) = inner.asleep.first_entry().filter(|e| e.key().0 <= now) {
                let ((_, ticket), id) = entry.remove_entry();
                inner.ready.push_back((ticket, id));
            }
        }
        let waiting = inner.ready.len();
        let index = inner.dice.as_mut().map_or(0, |dice| dice.below(waiting));
        inner.ready.remove(index)
    }
}

impl Inner {
    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket
    }
}

impl Clock for Scheduler {
    fn now(&self) -> DateTime<Utc> {
        self.0.borrow().now
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        Wait { inner: Rc::clone(&self.0), until: Some(at), ticket: None }.await;
    }
}

/// Waits for a turn, or for a time and then a turn. A time that has come is a turn too, so that nothing can wait for
/// ever without being counted.
#[must_use = "a turn is waited for only if it is awaited"]
pub struct Wait {
    inner: Rc<RefCell<Inner>>,
    until: Option<DateTime<Utc>>,
    ticket: Option<Ticket>,
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("until", &self.until).field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut inner = this.inner.borrow_mut();
        match this.ticket {
            Some(ticket) if inner.granted == Some(ticket) => {
                inner.granted = None;
                this.ticket = None;
                Poll::Ready(())
            }
            Some(_) => Poll::Pending,
            None => {
                let Some(task) = inner.current else { return Poll::Pending };
                let ticket = inner.ticket();
                match this.until.filter(|at| *at > inner.now) {
                    None => inner.ready.push_back((ticket, task)),
                    Some(at) => {
                        inner.asleep.insert((at, ticket), task);
                    }
                }
                this.ticket = Some(ticket);
                Poll::Pending
            }
        }
    }
}

/// Gives the ticket back.
impl Drop for Wait {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut inner = self.inner.borrow_mut();
        inner.ready.retain(|(waiting, _)| *waiting != ticket);
        if let Some(at) = self.until {
            inner.asleep.remove(&(at, ticket));
        }
    }
}

/// A random sequence that stays the same in every version, so that a seed in a report can be replayed: `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The sequence that a number starts.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if there is none.
    fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        self.next().checked_rem(n).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Scheduler, TooManyTurns};
    use crate::ports::Clock;
    use chrono::{DateTime, TimeDelta, Utc};
    use std::cell::RefCell;
    use std::rc::Rc;

    const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

    type Log = Rc<RefCell<Vec<String>>>;

    /// Two tasks that write one letter a turn, three times each.
    fn letters(order: Order) -> String {
        let scheduler = Scheduler::new(START, order);
        let log = Log::default();
        for name in ["a", "b"] {
            let (log, on) = (Rc::clone(&log), scheduler.clone());
            scheduler.spawn(name, async move {
                for _ in 0..3 {
                    on.turn().await;
                    log.borrow_mut().push(name.to_owned());
                }
            });
        }
        assert_eq!(scheduler.run(100), Ok(Vec::new()));
        log.take().concat()
    }

    #[test]
    fn a_fair_order_goes_round() {
        assert_eq!(letters(Order::Fair), "ababab");
    }

    #[test]
    fn a_seed_gives_one_order_and_seeds_give_many() {
        let orders: std::collections::BTreeSet<_> = (0..200).map(|seed| letters(Order::Seed(seed))).collect();
        assert_eq!(orders.len(), 20, "each of the 6! / (3! 3!) interleavings is met");
        assert_eq!(letters(Order::Seed(7)), letters(Order::Seed(7)));
    }

    #[test]
    fn time_goes_on_only_when_all_are_asleep() {
        let scheduler = Scheduler::new(START, Order::Fair);
        let log = Log::default();
        let (on, seen) = (scheduler.clone(), Rc::clone(&log));
        scheduler.spawn("sleeper", async move {
            on.sleep_until(START + TimeDelta::hours(1)).await;
            seen.borrow_mut().push(format!("awake at {}", on.now().format("%H:%M")));
        });
        let (on, seen) = (scheduler.clone(), Rc::clone(&log));
        scheduler.spawn("worker", async move {
            for _ in 0..50 {
                on.turn().await;
            }
            seen.borrow_mut().push(format!("worked until {}", on.now().format("%H:%M")));
            on.sleep_until(START - TimeDelta::hours(1)).await;
            seen.borrow_mut().push(format!("a past time is now, {}", on.now().format("%H:%M")));
        });
        assert_eq!(scheduler.run(100), Ok(Vec::new()));
        assert_eq!(log.take(), ["worked until 00:00", "a past time is now, 00:00", "awake at 01:00"]);
    }

    #[test]
    fn two_calls_of_one_task_at_the_same_time_are_two_turns() {
        let scheduler = Scheduler::new(START, Order::Fair);
        let log = Log::default();
        let call = |name: &'static str| {
            let (on, log) = (scheduler.clone(), Rc::clone(&log));
            async move {
                on.turn().await;
                log.borrow_mut().push(name.to_owned());
            }
        };
        let (one, two, three) = (call("one"), call("two"), call("three"));
        scheduler.spawn("joined", async move {
            tokio::join!(one, two);
        });
        scheduler.spawn("alone", three);
        assert_eq!(scheduler.run(100), Ok(Vec::new()));
        assert_eq!(log.take(), ["one", "two", "three"]);
    }

    #[test]
    fn what_goes_on_for_ever_is_stopped() {
        let scheduler = Scheduler::new(START, Order::Fair);
        let on = scheduler.clone();
        scheduler.spawn("for ever", async move {
            loop {
                on.sleep_until(on.now() + TimeDelta::minutes(1)).await;
            }
        });
        let at = START + TimeDelta::hours(1);
        assert_eq!(scheduler.run(60), Err(TooManyTurns { turns: 60, at }));
    }

    #[test]
    fn who_waits_for_nothing_is_named_and_a_ticket_that_is_dropped_is_no_turn() {
        let scheduler = Scheduler::new(START, Order::Fair);
        scheduler.spawn("dead", std::future::pending());
        let on = scheduler.clone();
        scheduler.spawn("fickle", async move {
            let (turn, sleep) = (on.turn(), on.sleep_until(START + TimeDelta::hours(1)));
            tokio::select! {
                biased;
                () = turn => {}
                () = sleep => {}
            }
        });
        assert_eq!(scheduler.run(4), Ok(vec!["dead".to_owned()]));
        assert_eq!(scheduler.now(), START, "the sleep that was given up moves no time");
    }
}
