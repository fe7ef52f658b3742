//! What one token may use, and the tokens of one organisation together: runs, computing time, results, stored rows,
//! questions to people, subscriptions. Whoever has no token runs the proxy and isn't limited, but shares like everybody.

mod bucket;
mod questions;
mod reached;
mod subscriptions;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use pml_worker::CpuMeter;
use uuid::Uuid;

use crate::scope::{Identity, Principal};
use bucket::Bucket;
pub use questions::{OpenQuestion, Questions};
pub use reached::{Limit, LimitReached, Whose};
pub use subscriptions::{CountedSubscription, MOST_SUBSCRIPTIONS, SubscriptionCounts};

const MIB: f64 = 1024.0 * 1024.0;
/// How long a count of stored rows is good for.
const COUNTED: Duration = Duration::from_secs(60);
/// So many accounts are kept before those that owe nothing are looked for.
const ACCOUNTS: usize = 1_000;

/// What is configured. 0 is no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsConfig {
    /// Runs at the same time.
    pub runs: usize,
    pub runs_per_minute: u32,
    pub cpu_seconds_per_minute: f64,
    pub result_mib_per_minute: f64,
    pub stored_rows: u64,
    /// Questions to people at the same time.
    pub questions: usize,
    /// How many times what one token may have the tokens of one organisation may have together.
    pub organisation: usize,
    /// A client that has been away for so long isn't asked any more.
    pub absent: Duration,
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig {
            runs: 100,
            runs_per_minute: 3_000,
            cpu_seconds_per_minute: 30.0,
            result_mib_per_minute: 16.0,
            stored_rows: 1_000_000,
            questions: 8,
            organisation: 4,
            absent: Duration::from_secs(30),
        }
    }
}

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Token(Uuid),
    Organisation(String),
}

#[derive(Debug)]
struct Account {
    running: usize,
    runs: Bucket,
    cpu_seconds: Bucket,
    result_bytes: Bucket,
    stored_rows: Option<u64>,
    rows_counted: Option<Instant>,
}

impl Account {
    fn new(now: Instant) -> Account {
        let bucket = Bucket::new(now);
        Account {
            running: 0,
            runs: bucket,
            cpu_seconds: bucket,
            result_bytes: bucket,
            stored_rows: None,
            rows_counted: None,
        }
    }
}

/// The accounts of those who run something.
pub struct RunLimits {
    config: LimitsConfig,
    accounts: Mutex<HashMap<Holder, Account>>,
}

impl RunLimits {
    pub fn new(config: LimitsConfig) -> Arc<RunLimits> {
        Arc::new(RunLimits { config, accounts: Mutex::default() })
    }

    /// Begins a run, or says which limit is in the way. `keeps_code` if it brings code that isn't stored yet.
    pub fn begin(
        self: &Arc<Self>,
        principal: &Principal,
        keeps_code: bool,
    ) -> Result<RunPermit, LimitReached> {
        let mut permit = RunPermit { limits: self.clone(), holders: Vec::new(), cpu: CpuMeter::default() };
        let Identity::Token(token) = &principal.identity else { return Ok(permit) };
        let holders = [
            (Whose::Token, Holder::Token(*token)),
            (Whose::Organisation, Holder::Organisation(principal.scope.org.clone())),
        ];
        let now = Instant::now();
        let mut accounts = self.lock();
        self.tidy(&mut accounts, now);
        for (whose, holder) in &holders {
            let account = accounts.entry(holder.clone()).or_insert_with(|| Account::new(now));
            self.check(account, *whose, keeps_code, now)?;
        }
        for (whose, holder) in holders {
            if let Some(account) = accounts.get_mut(&holder) {
                account.running += 1;
                account.runs.spend(1.0, self.per_minute(Limit::RunsPerMinute, whose), now);
            }
            permit.holders.push((whose, holder));
        }
        Ok(permit)
    }

    /// Whether it is time to count the rows that this token's scope holds; whoever is told so has to.
    pub fn should_count_rows(&self, principal: &Principal) -> bool {
        let Identity::Token(token) = &principal.identity else { return false };
        if self.config.stored_rows == 0 {
            return false;
        }
        let mut accounts = self.lock();
        let Some(account) = accounts.get_mut(&Holder::Token(*token)) else { return false };
        let is_due = account.rows_counted.is_none_or(|counted| counted.elapsed() >= COUNTED);
        if is_due {
            account.rows_counted = Some(Instant::now());
        }
        is_due
    }

    /// What the count came to.
    pub fn rows_counted(&self, principal: &Principal, rows: u64) {
        if let Identity::Token(token) = &principal.identity
            && let Some(account) = self.lock().get_mut(&Holder::Token(*token))
        {
            account.stored_rows = Some(rows);
        }
    }

    /// What is allowed, for one token or for all of an organisation; 0 is no limit.
    fn allowed(&self, limit: Limit, whose: Whose) -> f64 {
        let config = &self.config;
        let of_token = match limit {
            Limit::Runs => config.runs as f64,
            Limit::RunsPerMinute => f64::from(config.runs_per_minute),
            Limit::CpuSecondsPerMinute => config.cpu_seconds_per_minute,
            Limit::ResultMibPerMinute => config.result_mib_per_minute,
            Limit::StoredRows => config.stored_rows as f64,
            Limit::Questions => config.questions as f64,
        };
        match whose {
            Whose::Token => of_token,
            Whose::Organisation | Whose::Everyone => of_token * config.organisation as f64,
        }
    }

    /// As a bucket takes it, in which no limit is endless.
    fn per_minute(&self, limit: Limit, whose: Whose) -> f64 {
        let unit = if limit == Limit::ResultMibPerMinute { MIB } else { 1.0 };
        Some(self.allowed(limit, whose) * unit).filter(|most| *most > 0.0).unwrap_or(f64::MAX)
    }

    fn check(
        &self,
        account: &Account,
        whose: Whose,
        keeps_code: bool,
        now: Instant,
    ) -> Result<(), LimitReached> {
        let reached = |limit, retry_after| LimitReached {
            limit,
            whose,
            allowed: self.allowed(limit, whose),
            retry_after,
        };
        let most = self.allowed(Limit::Runs, whose);
        if most > 0.0 && account.running as f64 >= most {
            return Err(reached(Limit::Runs, Some(Duration::from_secs(1))));
        }
        self.check_bucket(&account.runs, Limit::RunsPerMinute, whose, now)?;
        self.check_usage(account, whose, now)?;
        let most = self.config.stored_rows;
        if keeps_code
            && whose == Whose::Token
            && most > 0
            && account.stored_rows.is_some_and(|rows| rows > most)
        {
            return Err(reached(Limit::StoredRows, None));
        }
        Ok(())
    }

    /// Checks what runs are charged for when they end.
    fn check_usage(&self, account: &Account, whose: Whose, now: Instant) -> Result<(), LimitReached> {
        self.check_bucket(&account.cpu_seconds, Limit::CpuSecondsPerMinute, whose, now)?;
        self.check_bucket(&account.result_bytes, Limit::ResultMibPerMinute, whose, now)
    }

    fn check_bucket(
        &self,
        bucket: &Bucket,
        limit: Limit,
        whose: Whose,
        now: Instant,
    ) -> Result<(), LimitReached> {
        match bucket.wait(self.per_minute(limit, whose), now) {
            None => Ok(()),
            retry_after => {
                Err(LimitReached { limit, whose, allowed: self.allowed(limit, whose), retry_after })
            }
        }
    }

    /// Forgets accounts that owe nothing.
    fn tidy(&self, accounts: &mut HashMap<Holder, Account>, now: Instant) {
        if accounts.len() < ACCOUNTS {
            return;
        }
        accounts.retain(|holder, account| {
            let whose = match holder {
                Holder::Token(_) => Whose::Token,
                Holder::Organisation(_) => Whose::Organisation,
            };
            let owes = |limit, bucket: &Bucket| !bucket.is_settled(self.per_minute(limit, whose), now);
            account.running > 0
                || account.rows_counted.is_some_and(|counted| counted.elapsed() < COUNTED)
                || owes(Limit::RunsPerMinute, &account.runs)
                || owes(Limit::CpuSecondsPerMinute, &account.cpu_seconds)
                || owes(Limit::ResultMibPerMinute, &account.result_bytes)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, Account>> {
        self.accounts.lock()
    }
}

/// One run under way. What it used is charged when it is dropped.
pub struct RunPermit {
    limits: Arc<RunLimits>,
    holders: Vec<(Whose, Holder)>,
    /// Counts the run's computing time.
    pub cpu: CpuMeter,
}

impl RunPermit {
    /// Whether the run may still begin: others of the same token may have ended since it was queued.
    pub fn is_still_allowed(&self) -> Result<(), LimitReached> {
        let now = Instant::now();
        let accounts = self.limits.lock();
        let held = self.holders.iter().filter_map(|(whose, holder)| Some((*whose, accounts.get(holder)?)));
        held.into_iter().try_for_each(|(whose, account)| self.limits.check_usage(account, whose, now))
    }

    /// Charges the bytes of a result. It isn't to be handed out if runs that began together have used up a whole minute's
    /// allowance.
    pub fn charge_result(&self, bytes: usize) -> Result<(), LimitReached> {
        let now = Instant::now();
        let mut accounts = self.limits.lock();
        for (whose, holder) in &self.holders {
            let Some(account) = accounts.get_mut(holder) else { continue };
            let most = self.limits.per_minute(Limit::ResultMibPerMinute, *whose);
            account.result_bytes.spend(bytes as f64, most, now);
            if let Some(wait) = account.result_bytes.overdrawn(most, now) {
                return Err(LimitReached {
                    limit: Limit::ResultMibPerMinute,
                    whose: *whose,
                    allowed: self.limits.allowed(Limit::ResultMibPerMinute, *whose),
                    retry_after: Some(wait),
                });
            }
        }
        Ok(())
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let used = self.cpu.total().as_secs_f64();
        let mut accounts = self.limits.lock();
        for (whose, holder) in &self.holders {
            if let Some(account) = accounts.get_mut(holder) {
                account.running -= 1;
                let most = self.limits.per_minute(Limit::CpuSecondsPerMinute, *whose);
                account.cpu_seconds.spend(used, most, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Limit, LimitReached, LimitsConfig, RunLimits, Whose};
    use crate::scope::{Identity, Principal, Scope};

    fn principal(token: u128, org: &str) -> Principal {
        let scope = Scope { org: org.into(), project: "p".into(), actor: "a".into() };
        Principal { identity: Identity::Token(Uuid::from_u128(token)), scope }
    }

    fn limit(reached: Result<super::RunPermit, LimitReached>) -> Option<(Limit, Whose)> {
        reached.err().map(|reached| (reached.limit, reached.whose))
    }

    #[test]
    fn runs_at_once_are_counted_by_token_and_by_organisation() {
        let config = LimitsConfig { runs: 2, organisation: 2, ..LimitsConfig::default() };
        let limits = RunLimits::new(config);
        let begin = |token, org| limits.begin(&principal(token, org), true);
        let mut held: Vec<_> = (0..2).map(|_| begin(1, "a").unwrap()).collect();
        assert_eq!(limit(begin(1, "a")), Some((Limit::Runs, Whose::Token)));
        held.extend((0..2).map(|_| begin(2, "a").unwrap()));
        assert_eq!(limit(begin(3, "a")), Some((Limit::Runs, Whose::Organisation)));
        assert_eq!(limit(begin(4, "b")), None);
        held.pop();
        assert_eq!(limit(begin(3, "a")), None);
        let nobody = Principal { identity: Identity::Configured, ..principal(0, "a") };
        assert!((0..50).all(|_| limits.begin(&nobody, true).is_ok()));
    }

    #[test]
    fn what_was_used_is_charged_to_the_next() {
        let config =
            LimitsConfig { result_mib_per_minute: 4.0, runs_per_minute: 40, ..LimitsConfig::default() };
        let limits = RunLimits::new(config);
        let ann = principal(1, "a");
        limits.begin(&ann, true).unwrap().charge_result(2 << 20).unwrap();
        assert_eq!(limit(limits.begin(&ann, true)), Some((Limit::ResultMibPerMinute, Whose::Token)));
        let queued = limits.begin(&principal(4, "d"), true).unwrap();
        queued.is_still_allowed().unwrap();
        limits.begin(&principal(4, "d"), true).unwrap().charge_result(2 << 20).unwrap();
        assert_eq!(
            queued.is_still_allowed().unwrap_err().limit,
            Limit::ResultMibPerMinute,
            "used up meanwhile"
        );
        let cid = limits.begin(&principal(3, "c"), true).unwrap();
        cid.charge_result(3 << 20).unwrap();
        assert!(cid.charge_result(2 << 20).is_err(), "more than a minute's at once");
        let bob = principal(2, "b");
        let begun = (0..20).filter(|_| limits.begin(&bob, true).is_ok()).count();
        assert!((10..=11).contains(&begun), "a quarter of the minute's at once, not {begun}");
    }

    #[test]
    fn only_new_code_needs_room_to_be_stored() {
        let limits = RunLimits::new(LimitsConfig { stored_rows: 10, ..LimitsConfig::default() });
        let ann = principal(1, "a");
        drop(limits.begin(&ann, true).unwrap());
        assert!(limits.should_count_rows(&ann) && !limits.should_count_rows(&ann));
        limits.rows_counted(&ann, 11);
        assert_eq!(limit(limits.begin(&ann, true)), Some((Limit::StoredRows, Whose::Token)));
        assert_eq!(limit(limits.begin(&ann, false)), None);
        limits.rows_counted(&ann, 10);
        assert_eq!(limit(limits.begin(&ann, true)), None);
    }
}
