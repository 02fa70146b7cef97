//! Every route with every role: callers without the permission are refused before anything else happens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use http::StatusCode;
use pinakes_folio::platform::permissions::Access;
use pinakes_folio::routes;

use crate::engine::Engine;
use crate::server::{Failure, KEEPER, Server, USERS};

/// `tests/data/permissions.out` contains the table: what each route requires, and which roles have access. `BLESS=1`
/// rewrites it: read the diff before the commit.
#[tokio::test]
async fn every_route_lets_in_whom_it_should() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for route in routes::table() {
        let path = route.path.replace("{tenant}", "nothing");
        let path: String = path
            .split('/')
            .map(|part| if part.starts_with('{') { "00000000-0000-4000-8000-000000000000" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        let asked = match &route.access {
            Access::Anybody => "-".to_owned(),
            Access::User => "a token".to_owned(),
            Access::Permission(name) => name.to_string(),
            Access::Supertenant(name) => format!("{name} (default tenant)"),
        };
        let mut passing = Vec::new();
        for who in USERS.iter().map(|it| it.0).chain([KEEPER, "nobody"]) {
            let (status, _, body) = server.ask(&format!("{who} {} {path}\n{{}}", route.method)).await?;
            let body = String::from_utf8_lossy(&body);
            let is_refused = match status {
                StatusCode::UNAUTHORIZED => true,
                StatusCode::FORBIDDEN => body.starts_with("Access "),
                _ => false,
            };
            assert!(!body.starts_with("No suitable module"), "{} {path} is not served", route.method);
            if !is_refused {
                passing.push(who);
            }
        }
        let line = format!("{asked}: {}", passing.join(" "));
        lines.insert(format!("{} {}", route.path, route.method), line);
    }
    let mut out = String::new();
    for (route, line) in &lines {
        writeln!(out, "{route}  {line}")?;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/permissions.out");
    if std::env::var_os("BLESS").is_some() {
        return Ok(fs::write(file, out)?);
    }
    assert_eq!(fs::read_to_string(file)?, out);
    Ok(())
}
