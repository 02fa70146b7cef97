//! Loans, requests, fees, notes and other records that grow with the years: lists find the same by the search index as
//! on the bodies, by any field and in any order.

use std::time::Duration;

use pinakes_store::Search;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// More than kinds without an index have.
const N_RECORDS: usize = 260;

/// A collection: its path, the name of its list, its records, queries on them, and the kind that keeps them.
struct Case {
    path: &'static str,
    list: &'static str,
    make: fn(usize) -> Value,
    queries: &'static [&'static str],
    kind: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        path: "/loan-storage/loans",
        list: "loans",
        make: loan,
        queries: &[
            "itemStatus==\"checked OUT\" sortby id",
            "actionComment=\"rebound leather\" sortby renewalCount id",
            "renewalCount>7 and status.name==Closed sortby returnDate id",
            "returnDate<2025-02-10 sortby returnDate/sort.descending id",
            "cql.allRecords=1 NOT returnDate=\"\" sortby id",
            "checkoutServicePointId==00000000-0000-4000-8900-000000000003 sortby itemStatus id",
            "metadata.createdDate>2020 not loanPolicyId==00000000-0000-4000-8900-000000000001 sortby id",
        ],
        kind: "folio_loan",
    },
    Case {
        path: "/loan-storage/loan-history",
        list: "loansHistory",
        make: loan,
        queries: &["loan.itemStatus==Available", "operation==I and loan.renewalCount<3"],
        kind: "folio_loan_history",
    },
    Case {
        path: "/request-storage/requests",
        list: "requests",
        make: request,
        queries: &[
            "fulfillmentPreference==delivery sortby requestExpirationDate id",
            "patronComments=\"volume 7\" sortby id",
            "requestExpirationDate>2025-06-01 sortby patronComments/sort.descending id",
            "cql.allRecords=1 sortby holdingsRecordId id",
        ],
        kind: "folio_request",
    },
    Case {
        path: "/accounts",
        list: "accounts",
        make: account,
        queries: &[
            "paymentStatus.name==\"Paid fully\" sortby amount id",
            "amount>4.5 and remaining<2 sortby id",
            "title=\"tides of\" sortby remaining/sort.descending id",
            "barcode==b1* sortby barcode",
        ],
        kind: "folio_account",
    },
    Case {
        path: "/feefineactions",
        list: "feefineactions",
        make: action,
        queries: &[
            "source=\"clerk 7\" sortby id",
            "comments=\"paid 13*\" sortby amountAction id",
            "balance>5 and paymentMethod==cash sortby id",
        ],
        kind: "folio_fee_fine_action",
    },
    Case {
        path: "/notes",
        list: "notes",
        make: note,
        queries: &["content=7 sortby title", "title=\"about 12*\" sortby title"],
        kind: "folio_note",
    },
    Case {
        path: "/check-in-storage/check-ins",
        list: "checkIns",
        make: check_in,
        queries: &["itemStatusPriorToCheckIn==Available sortby id", "requestQueueSize>2 sortby id"],
        kind: "folio_check_in",
    },
    Case {
        path: "/organizations-storage/organizations",
        list: "organizations",
        make: organization,
        queries: &[
            "status==inactive and isVendor==true sortby code",
            "description=press sortby name/sort.descending",
        ],
        kind: "folio_organization",
    },
];

fn id(kind: usize, n: usize) -> String {
    format!("00000000-0000-4000-8{kind:03}-{n:012}")
}

fn one_of(words: &[&'static str], n: usize) -> &'static str {
    words[n % words.len()]
}

fn day(n: usize) -> String {
    format!("2025-{:02}-{:02}T08:00:00.000+00:00", n % 12 + 1, n % 28 + 1)
}

fn loan(n: usize) -> Value {
    let is_open = n.is_multiple_of(5);
    let mut loan = json!({
        "id": id(1, n), "userId": id(2, n % 20), "itemId": id(3, n), "loanDate": day(n), "dueDate": day(n + 3),
        "action": "checkedout", "status": {"name": if is_open { "Open" } else { "Closed" }},
        "itemStatus": if is_open { "Checked out" } else { "Available" }, "renewalCount": n % 10,
        "actionComment": format!("{} {}", one_of(&["Rebound", "torn"], n), one_of(&["leather", "Léather", "cloth"], n)),
        "loanPolicyId": id(900, n % 4), "checkoutServicePointId": id(900, n % 7),
    });
    if !is_open {
        loan["returnDate"] = day(n + 40).into();
    }
    loan
}

fn request(n: usize) -> Value {
    json!({
        "id": id(4, n), "requestLevel": "Item", "requestType": "Hold", "requestDate": day(n), "status": "Closed - Filled",
        "requesterId": id(2, n % 20), "itemId": id(3, n), "instanceId": id(5, n), "holdingsRecordId": id(6, n % 11),
        "fulfillmentPreference": one_of(&["Hold Shelf", "Delivery"], n), "patronComments": format!("Volume {}", n % 9),
        "requestExpirationDate": day(n + 5),
    })
}

fn account(n: usize) -> Value {
    json!({
        "id": id(7, n), "userId": id(2, n % 20), "feeFineId": id(8, 1), "ownerId": id(8, 2), "amount": n % 11,
        "remaining": (n % 4) as f64 + 0.5, "status": {"name": "Open"}, "barcode": format!("B{n}"),
        "paymentStatus": {"name": one_of(&["Outstanding", "Paid fully"], n)},
        "title": format!("{} of the sea", one_of(&["Tides", "Winds", "Salt"], n)),
    })
}

fn action(n: usize) -> Value {
    json!({
        "id": id(9, n), "accountId": id(7, n), "userId": id(2, n % 20), "typeAction": "Paid partially",
        "dateAction": day(n), "source": format!("Clerk {}", n % 9), "comments": format!("STAFF : paid {n}"),
        "balance": n % 8, "amountAction": n % 6, "paymentMethod": one_of(&["cash", "card"], n),
    })
}

fn note(n: usize) -> Value {
    json!({
        "id": id(10, n), "title": format!("About {n}"), "domain": "users", "content": format!("<p>see {}</p>", n % 13),
        "links": [{"id": id(2, n % 20), "type": "user"}],
    })
}

fn check_in(n: usize) -> Value {
    json!({
        "id": id(11, n), "occurredDateTime": day(n), "itemId": id(3, n), "servicePointId": id(900, n % 7),
        "performedByUserId": id(2, 0), "requestQueueSize": n % 4,
        "itemStatusPriorToCheckIn": one_of(&["Available", "Checked out"], n),
    })
}

fn organization(n: usize) -> Value {
    json!({
        "id": id(12, n), "name": format!("House {n}"), "code": format!("H{n:03}"), "isVendor": n.is_multiple_of(3),
        "status": one_of(&["Active", "Inactive"], n), "description": one_of(&["A press", "A binder", "A shop"], n),
    })
}

/// Returns the ids, or whole records, that a query lists, and their number.
async fn listed(server: &Server, case: &Case, query: &str) -> Result<(Vec<Value>, Value), Failure> {
    let found = server.asked(&format!("admin GET {}?query={query}&limit=1000", case.path), 200).await?;
    let records = found[case.list].as_array().ok_or("no list")?;
    Ok((records.iter().map(|it| it["id"].clone()).collect(), found["totalRecords"].clone()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_find_the_same_by_the_index() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let types = server.asked("admin GET /note-types", 200).await?;
        for case in CASES.iter().filter(|it| it.list != "loansHistory") {
            for n in 0..N_RECORDS {
                let mut record = (case.make)(n);
                if case.list == "notes" {
                    record["typeId"] = types["noteTypes"][0]["id"].clone();
                }
                server.asked(&format!("admin POST {}\n{record}", case.path), 201).await?;
            }
        }
        let mut before = Vec::new();
        for case in &CASES {
            let kind = pinakes_folio::kinds().iter().find(|it| it.name == case.kind).ok_or(case.kind)?;
            assert_eq!(kind.search, Search::Folded, "{}", case.kind);
            for query in case.queries {
                let answer = listed(&server, case, query).await?;
                let n = answer.0.len();
                assert!(0 < n && n <= N_RECORDS, "{} {query} finds {n}", case.path);
                assert_eq!(answer.1, n, "{} {query}", case.path);
                before.push(answer);
            }
        }
        assert!(server.tenant("diku")?.wait_for_indexes(Duration::from_secs(120))?, "the index follows");
        let mut expected = before.iter();
        for case in &CASES {
            for query in case.queries {
                let answer = listed(&server, case, query).await?;
                assert_eq!(Some(&answer), expected.next(), "{} {query}", case.path);
            }
        }
    }
    Ok(())
}
