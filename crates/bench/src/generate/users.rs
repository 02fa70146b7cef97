//! Accounts: people with groups, as the functional accounts of a SciCat site or the users of a load test.

use serde::{Deserialize, Serialize};

use super::random::Random;
use super::words::person;

/// One account. The password is for test accounts on a test server only: it is derived from the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAccount {
    /// Login name.
    pub username: String,
    /// Full name.
    pub name: String,
    /// Address in a domain that is reserved for examples.
    pub email: String,
    /// Password.
    pub password: String,
    /// Groups.
    pub role: Vec<String>,
    /// Always false: no access beyond the groups.
    pub global: bool,
}

/// Returns the `n`-th account of `seed`; the accounts share `n_groups` groups (at least one), two for each.
pub fn user(seed: u64, n: u64, n_groups: u64) -> UserAccount {
    let mut random = Random::new(seed, n);
    let first = random.below(n_groups.max(1));
    let second = (first + 1) % n_groups.max(1);
    let mut role = vec![format!("group{first}"), format!("group{second}")];
    role.dedup();
    UserAccount {
        username: format!("user{n}"),
        name: person(&mut random),
        email: format!("user{n}@example.org"),
        password: format!("{:016x}", random.bits()),
        role,
        global: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_distinct_and_seeded() {
        let names: std::collections::BTreeSet<String> = (0..100).map(|n| user(1, n, 5).username).collect();
        assert_eq!(names.len(), 100);
        assert_eq!(user(1, 3, 5), user(1, 3, 5));
        assert_ne!(user(1, 3, 5).password, user(2, 3, 5).password);
        assert_eq!(user(1, 3, 1).role, ["group0"]);
    }
}
