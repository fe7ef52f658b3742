//! How many people are waited for. Each of them holds a call, and often a sandbox process, for as long as they think.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use pml_worker::Tenant;

use super::{Limit, LimitReached, LimitsConfig, Whose};

/// All callers together may have so many times what one may have.
const TOGETHER: usize = 10;

/// The questions that nobody has answered yet.
#[derive(Debug)]
pub struct Questions {
    each: usize,
    organisation: usize,
    open: Mutex<HashMap<Tenant, usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct OpenQuestion {
    questions: Arc<Questions>,
    tenant: Tenant,
}

impl Questions {
    pub fn new(config: &LimitsConfig) -> Arc<Questions> {
        Arc::new(Questions {
            each: config.questions,
            organisation: config.organisation,
            open: Mutex::default(),
        })
    }

    /// Counts one more of this tenant, or says that there are enough.
    pub fn open(self: &Arc<Self>, tenant: &Tenant) -> Result<OpenQuestion, LimitReached> {
        let mut open = self.lock();
        let own = open.get(tenant).copied().unwrap_or(0);
        let of_organisation: usize =
            open.iter().filter(|(other, _)| other.group() == tenant.group()).map(|(_, count)| count).sum();
        let all: usize = open.values().sum();
        for (whose, count, times) in [
            (Whose::Token, own, 1),
            (Whose::Organisation, of_organisation, self.organisation),
            (Whose::Everyone, all, TOGETHER),
        ] {
            let most = self.each * times;
            if most > 0 && count >= most {
                let allowed = most as f64;
                return Err(LimitReached { limit: Limit::Questions, whose, allowed, retry_after: None });
            }
        }
        open.insert(tenant.clone(), own + 1);
        Ok(OpenQuestion { questions: self.clone(), tenant: tenant.clone() })
    }

    pub fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, usize>> {
        self.open.lock()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut open = self.questions.lock();
        if let Some(own) = open.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pml_worker::Tenant;

    use super::{super::LimitsConfig, Questions};

    #[test]
    fn they_are_bounded_for_one_and_for_an_organisation() {
        let config = LimitsConfig { questions: 2, organisation: 2, ..LimitsConfig::default() };
        let questions = Questions::new(&config);
        let ask = |org: &str, name: &str| questions.open(&Tenant::new(org, name));
        let mut open: Vec<_> = (0..2).map(|_| ask("a", "ann").unwrap()).collect();
        assert!(ask("a", "ann").is_err());
        open.extend((0..2).map(|_| ask("a", "bob").unwrap()));
        assert!(ask("a", "cid").is_err() && ask("b", "dan").is_ok());
        open.clear();
        assert_eq!(questions.count(), 0);
        assert!(ask("a", "cid").is_ok());
    }
}
