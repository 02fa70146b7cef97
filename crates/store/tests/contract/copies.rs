//! A catalogue copied to another place, between all engines.

use bytes::Bytes;
use pinakes_store::{Document, Limits, Query, Tenant, copy_catalogue, copy_tenant};
use serde_json::json;

use crate::engines::{Place, engines, read, write};
use crate::kinds::{ALL, ITEM, PLAIN, USER};

fn fill(tenant: &Tenant) {
    let list = write(tenant, |txn| txn.new_list(&ITEM));
    for position in 0..3_u64 {
        write(tenant, move |txn| {
            txn.append_members(&ITEM, list, position * 2, 2, Bytes::from_static(b"1,2"))
        });
    }
    write(tenant, move |txn| {
        for n in 0..1_200 {
            let body = json!({
                "name": format!("n{}", n % 9), "size": n, "mass": f64::from(n) / 4.0, "keywords": ["k", n.to_string()],
                "group": n % 4, "doi": format!("10.1/{n}"), "parents": ["0"], "note": "Röntgen"
            });
            let document = Document::new(&ITEM, n.to_string(), &body)?;
            txn.insert_document(&if n == 3 { document.with_list(list, 6) } else { document })?;
        }
        txn.insert(&USER, "u", &json!({"username": "ada"}))?;
        txn.update(&ITEM, "5", &json!({"name": "changed"}))?;
        txn.delete(&ITEM, "7")?;
        Ok(())
    });
}

fn look(source: &Tenant, target: &Tenant) {
    assert_eq!(target.check().expect("a check"), Vec::<String>::new());
    let all = Query::filter(pinakes_store::Expr::All);
    for kind in ALL {
        let (from, to) =
            (read(source, |view| view.find(kind, &all)), read(target, |view| view.find(kind, &all)));
        let head = |it: &pinakes_store::Record| (it.id.clone(), it.version, it.body.clone(), it.n_members);
        assert_eq!(from.iter().map(head).collect::<Vec<_>>(), to.iter().map(head).collect::<Vec<_>>());
    }
    let changes = crate::records::changes(target, 0, 1_201);
    let deleted = changes.into_iter().filter(|it| it.deleted);
    assert_eq!(deleted.map(|it| it.id).collect::<Vec<_>>(), ["7"]);
}

fn pairs() -> Vec<(Place, Place)> {
    let n = engines().len();
    (0..n).flat_map(|from| (0..n).map(move |to| (engines().remove(from), engines().remove(to)))).collect()
}

#[test]
fn a_copy_is_the_same_and_goes_on() {
    for (from, to) in pairs() {
        let (source, target) = (from.open(ALL, Limits::default()), to.open(ALL, Limits::default()));
        let tenant = source.create_tenant("t", "described").expect("a tenant");
        fill(&tenant);
        // The first run stops in the middle, where its caller does.
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            copy_catalogue(&source, &target, &mut |progress| {
                assert!(progress.copied.n_records < 1_000, "the planned stop at {}", progress.kind);
            })
        }));
        assert!(stopped.is_err(), "it was stopped");
        let rest = copy_catalogue(&source, &target, &mut |_| {}).expect("a copy");
        assert!(rest.n_records < 1_200, "{}: only what was missing: {}", to.engine, rest.n_records);
        look(&tenant, &target.tenant("t").expect("the copy"));
        assert_eq!(target.tenants().expect("a list")[0].description, "described");
    }
}

#[test]
fn a_target_with_records_is_refused() {
    for (from, to) in pairs() {
        let (source, target) = (from.tenant(ALL), to.tenant(ALL));
        write(&target, |txn| txn.insert(&PLAIN, "own", &json!({})));
        fill(&source);
        let refused = copy_tenant(&source, &target, &mut |_| {}).expect_err("a refusal");
        assert!(refused.to_string().contains("already"), "{refused}");
    }
}
