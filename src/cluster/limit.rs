//! How fast requests go out: a bucket of tokens, each request takes one, and whoever finds none waits for its turn.
//!
//! Turns go round among those who ask, so that one controller with much to write does not keep others waiting. Watches and
//! the lease take no token: they must not wait for anything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// So many at once, and so many a second in the long run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// More than zero.
    pub per_second: f64,
    /// One or more.
    pub burst: u32,
}

/// Tokens that come in with time.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate: Rate) -> Self {
        Bucket { tokens: rate.burst.into(), at: Instant::now() }
    }

    /// Whether it is as good as new.
    pub(super) fn is_full(&self, rate: Rate) -> bool {
        self.tokens + self.at.elapsed().as_secs_f64() * rate.per_second >= rate.burst.into()
    }

    /// Takes a token, else gives the time until there is one.
    pub(super) fn take(&mut self, rate: Rate) -> Result<(), Duration> {
        let now = Instant::now();
        let come = (now - self.at).as_secs_f64() * rate.per_second;
        (self.tokens, self.at) = ((self.tokens + come).min(rate.burst.into()), now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        // A rate may be so small that the time of the next token is none.
        let wait =
            Duration::try_from_secs_f64((1.0 - self.tokens) / rate.per_second).unwrap_or(Duration::MAX);
        // A little more than it takes, so that rounding does not ask twice.
        Err(wait.saturating_add(Duration::from_micros(1)))
    }
}

/// Who asks: a controller by its number, or one of these.
pub(super) type Asker = u64;
pub(super) const OTHERS: Asker = 0;
pub(super) const READS: Asker = u64::MAX;
pub(super) const EVENTS: Asker = u64::MAX - 1;

/// What all requests but watches and the lease pass.
pub(super) struct Limiter {
    /// None: nobody waits.
    rate: Option<Rate>,
    state: Mutex<State>,
}

struct State {
    bucket: Option<Bucket>,
    waiting: BTreeMap<Asker, VecDeque<oneshot::Sender<()>>>,
    /// Whose turn was last.
    last: Asker,
    /// Whether somebody hands out tokens as they come.
    attended: bool,
}

impl Limiter {
    pub(super) fn new(rate: Option<Rate>) -> Arc<Self> {
        let state =
            State { bucket: rate.map(Bucket::new), waiting: BTreeMap::new(), last: 0, attended: false };
        Arc::new(Limiter { rate, state: Mutex::new(state) })
    }

    /// Waits for a token.
    pub(super) async fn pass(self: &Arc<Self>, asker: Asker) {
        let Some(rate) = self.rate else { return };
        let turn = {
            let mut state = self.lock();
            if state.waiting.is_empty() && state.take(rate).is_ok() {
                return;
            }
            let (turn, comes) = oneshot::channel();
            state.waiting.entry(asker).or_default().push_back(turn);
            if !std::mem::replace(&mut state.attended, true) {
                tokio::spawn(self.clone().attend(rate));
            }
            comes
        };
        // It is not dropped before everybody had a turn.
        let _ = turn.await;
    }

    /// Hands out tokens until nobody waits.
    async fn attend(self: Arc<Self>, rate: Rate) {
        loop {
            let pause = {
                let mut state = self.lock();
                match state.hand_out(rate) {
                    Some(pause) => pause,
                    None => {
                        state.attended = false;
                        return;
                    }
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn take(&mut self, rate: Rate) -> Result<(), Duration> {
        self.bucket.get_or_insert_with(|| Bucket::new(rate)).take(rate)
    }

    /// Gives every token to the next in turn. The time until the next token; `None` when nobody waits.
    fn hand_out(&mut self, rate: Rate) -> Option<Duration> {
        loop {
            self.drop_those_who_left();
            if self.waiting.is_empty() {
                return None;
            }
            if let Err(pause) = self.take(rate) {
                return Some(pause);
            }
            if let Some(turn) = self.next() {
                // Whoever left just now leaves a token unused.
                let _ = turn.send(());
            }
        }
    }

    /// The one who has waited longest of the asker after the last one.
    fn next(&mut self) -> Option<oneshot::Sender<()>> {
        let after = self.last.checked_add(1).and_then(|from| self.waiting.range(from..).next());
        let asker = *after.or_else(|| self.waiting.first_key_value())?.0;
        self.last = asker;
        let turns = self.waiting.get_mut(&asker)?;
        let turn = turns.pop_front();
        if turns.is_empty() {
            self.waiting.remove(&asker);
        }
        turn
    }

    fn drop_those_who_left(&mut self) {
        self.waiting.retain(|_, turns| {
            turns.retain(|turn| !turn.is_closed());
            !turns.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10.0, burst: 5 };

    #[tokio::test(start_paused = true)]
    async fn burst_goes_at_once_and_the_rest_at_the_rate() {
        let limiter = Limiter::new(Some(RATE));
        let began = Instant::now();
        for _ in 0..5 {
            limiter.pass(1).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            limiter.pass(1).await;
        }
        let took = began.elapsed();
        assert!(took > Duration::from_millis(990) && took < Duration::from_millis(1050), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn turns_go_round_among_askers() {
        let limiter = Limiter::new(Some(Rate { per_second: 10.0, burst: 1 }));
        limiter.pass(1).await;
        let order = Arc::<Mutex<Vec<Asker>>>::default();
        let asked: Vec<_> = [1, 1, 1, 1, 2, READS]
            .map(|asker| {
                let (limiter, order) = (limiter.clone(), order.clone());
                tokio::spawn(async move {
                    limiter.pass(asker).await;
                    order.lock().unwrap().push(asker);
                })
            })
            .into();
        for asked in asked {
            asked.await.expect("it passes");
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, READS, 1, 1, 1][..]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_takes_no_token() {
        let limiter = Limiter::new(Some(Rate { per_second: 1.0, burst: 1 }));
        limiter.pass(1).await;
        for _ in 0..50 {
            let left = tokio::time::timeout(Duration::from_millis(1), limiter.pass(1)).await;
            assert!(left.is_err());
        }
        let began = Instant::now();
        limiter.pass(1).await;
        assert!(began.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn any_rate_above_zero_has_a_next_token() {
        for (per_second, least) in
            [(f64::MIN_POSITIVE, Duration::MAX), (1e-300, Duration::MAX), (f64::MAX, Duration::ZERO)]
        {
            let rate = Rate { per_second, burst: 1 };
            let mut bucket = Bucket { tokens: 0.0, at: Instant::now() };
            let wait = bucket.take(rate).err().unwrap_or_default();
            assert!(wait >= least, "{per_second}: {wait:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_nobody_waits() {
        let limiter = Limiter::new(None);
        let began = Instant::now();
        for _ in 0..10_000 {
            limiter.pass(1).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
