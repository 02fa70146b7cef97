//! Jobs: each is worked on by one owner at a time, and by another when that owner is gone.
//!
//! A lease of 0 ms has expired as soon as it is given: tests need not wait for owners that died.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pinakes_store::{Lease, Limits, StoreError, Tenant};
use serde_json::json;

use crate::engines::{engines, eventually, on_each, read, refused, write};
use crate::kinds::{ALL, PLAIN};

/// Longer than any test runs.
const LONG_MS: u32 = 3_600_000;
const QUEUE: &str = "imports";

fn queue(tenant: &Tenant, ids: &'static [&'static str]) {
    for id in ids {
        assert!(write(tenant, move |txn| txn.queue_job(QUEUE, id)), "{id} was not there");
    }
}

fn take(tenant: &Tenant, owner: &'static str, for_ms: u32) -> Option<Lease> {
    write(tenant, move |txn| txn.take_lease(QUEUE, owner, for_ms))
}

fn is_lost(error: &StoreError) -> bool {
    matches!(error, StoreError::LeaseLost { queue, .. } if queue == QUEUE)
}

#[test]
fn a_job_is_queued_once_and_held_by_one() {
    on_each(ALL, |tenant| {
        assert_eq!(take(tenant, "a", LONG_MS), None);
        queue(tenant, &["1"]);
        assert!(!write(tenant, |txn| txn.queue_job(QUEUE, "1")));
        let held = take(tenant, "a", LONG_MS).expect("a job");
        assert_eq!((held.id.as_str(), held.owner.as_str(), held.turn), ("1", "a", 1));
        assert_eq!(take(tenant, "b", LONG_MS), None);
        assert_eq!(write(tenant, |txn| txn.take_lease("others", "b", LONG_MS)), None);
        assert_eq!(write(tenant, |txn| txn.take_lease_of(QUEUE, "1", "b", LONG_MS)), None);
        let listed = read(tenant, |view| view.jobs(QUEUE, 10));
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].owner.as_deref(), listed[0].is_held), (Some("a"), true));
        let done = held.clone();
        write(tenant, move |txn| txn.finish_job(&done));
        assert!(read(tenant, |view| view.jobs(QUEUE, 10)).is_empty());
        assert!(is_lost(&refused(tenant, move |txn| txn.finish_job(&held))));
    });
}

#[test]
fn a_lease_that_ended_is_taken_over_and_its_work_refused() {
    on_each(ALL, |tenant| {
        queue(tenant, &["1"]);
        let dead = take(tenant, "a", 0).expect("a job");
        let held = take(tenant, "b", LONG_MS).expect("the job of the dead");
        assert_eq!((held.id.as_str(), held.owner.as_str(), held.turn), ("1", "b", 2));
        let late = dead.clone();
        let error = refused(tenant, move |txn| {
            txn.insert(&PLAIN, "late", &json!({}))?;
            txn.renew_lease(&late, LONG_MS)
        });
        assert!(is_lost(&error), "{error}");
        assert_eq!(read(tenant, |view| view.get(&PLAIN, "late")).map(|it| it.id), None);
        let late = dead.clone();
        assert!(is_lost(&refused(tenant, move |txn| txn.release_lease(&late, 0))));
        assert!(is_lost(&refused(tenant, move |txn| txn.finish_job(&dead))));
        write(tenant, move |txn| {
            txn.insert(&PLAIN, "done", &json!({}))?;
            txn.finish_job(&held)
        });
        assert_eq!(take(tenant, "c", LONG_MS), None);
    });
}

#[test]
fn a_lease_is_renewed_while_nobody_took_it() {
    on_each(ALL, |tenant| {
        queue(tenant, &["1"]);
        let held = take(tenant, "a", 0).expect("a job");
        let renewed = write(tenant, move |txn| txn.renew_lease(&held, LONG_MS));
        assert_eq!(renewed.turn, 1);
        assert_eq!(take(tenant, "b", LONG_MS), None);
        // Once given back, it may be taken at once, or later.
        write(tenant, move |txn| txn.release_lease(&renewed, 0));
        let again = take(tenant, "b", LONG_MS).expect("the job given back");
        assert_eq!(again.turn, 2);
        write(tenant, move |txn| txn.release_lease(&again, LONG_MS));
        assert_eq!(take(tenant, "c", LONG_MS), None);
        let listed = read(tenant, |view| view.jobs(QUEUE, 10));
        assert_eq!((listed[0].owner.as_deref(), listed[0].is_held, listed[0].turn), (None, false, 2));
        assert!(write(tenant, |txn| txn.cancel_job(QUEUE, "1")));
        assert!(!write(tenant, |txn| txn.cancel_job(QUEUE, "1")));
    });
}

#[test]
fn a_job_is_queued_with_what_it_is_about_or_not_at_all() {
    on_each(ALL, |tenant| {
        refused(tenant, |txn| {
            txn.queue_job(QUEUE, "1")?;
            Err::<(), _>(StoreError::Query("no".into()))
        });
        assert_eq!(take(tenant, "a", LONG_MS), None);
    });
}

/// Several servers on one catalogue where the engine allows it; each has a few workers.
#[test]
fn no_job_is_taken_twice_by_workers_at_once() {
    const N_JOBS: usize = 60;
    for place in engines() {
        let first = place.open(ALL, Limits::default());
        let second = place.open(ALL, Limits::default());
        let tenant = first.tenant_or_new("t").expect("a tenant");
        let other = second.tenant("t").expect("the same tenant");
        write(&tenant, |txn| (0..N_JOBS).try_for_each(|n| txn.queue_job(QUEUE, &n.to_string()).map(|_| ())));
        let taken = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for server in [&tenant, &other, &tenant, &other] {
                scope.spawn(|| {
                    while let Some(lease) = take(server, "worker", LONG_MS) {
                        taken.lock().expect("no panic").push(lease.id.clone());
                        write(server, move |txn| txn.finish_job(&lease));
                    }
                });
            }
        });
        let taken = taken.into_inner().expect("no panic");
        assert_eq!(taken.len(), N_JOBS, "{}", place.engine);
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), N_JOBS, "{}", place.engine);
        assert!(read(&other, |view| view.jobs(QUEUE, 10)).is_empty());
    }
}

#[test]
fn a_heartbeat_holds_a_job_and_says_when_it_lost_it() {
    on_each(ALL, |tenant| {
        queue(tenant, &["1"]);
        let held = take(tenant, "a", 0).expect("a job");
        let heart = tenant.keep_lease(held.clone(), 30).expect("a heartbeat");
        // It was renewed when its end has moved, however slow the machine is.
        eventually(|| held.until_ms < read(tenant, |view| view.jobs(QUEUE, 1))[0].until_ms);
        assert!(write(tenant, |txn| txn.cancel_job(QUEUE, "1")));
        eventually(|| heart.is_lost());
    });
}
