//! Settings of other scopes and other users are invisible to callers without permission.

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Returns the keys of a list.
fn keys(list: &Value) -> Vec<&str> {
    list["items"].as_array().into_iter().flatten().filter_map(|it| it["key"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_name_the_scopes() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        // A refusal names the caller.
        let (_, _, refusal) = server.ask("stranger GET /settings/entries").await?;
        let refusal = String::from_utf8(refusal)?;
        let stranger = refusal.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
        let given = json!({"userId": stranger, "permissions": [
            "mod-settings.entries.collection.get", "mod-settings.entries.item.get", "mod-settings.entries.item.post",
            "mod-settings.entries.item.put", "mod-settings.entries.item.delete",
            "mod-settings.global.read.mail", "mod-settings.owner.read.ui", "mod-settings.owner.write.ui",
        ]});
        server.asked(&format!("admin POST /perms/users\n{given}"), 201).await?;
        let other = "00000000-0000-4000-8000-0000000000aa";
        for (number, (scope, key, user)) in [
            ("mail", "a", ""),
            ("secret", "b", ""),
            ("ui", "c", stranger.as_str()),
            ("ui", "d", other),
            ("ui", "e", ""),
            ("Mail", "f", ""),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("00000000-0000-4000-8000-00000000000{number}");
            let mut entry = json!({"id": id, "scope": scope, "key": key, "value": 1});
            if !user.is_empty() {
                entry["userId"] = user.into();
            }
            server.asked(&format!("admin POST /settings/entries\n{entry}"), 204).await?;
        }
        let seen = server.asked("stranger GET /settings/entries", 200).await?;
        assert_eq!((keys(&seen), seen["totalRecords"].as_u64()), (vec!["a", "c"], Some(2)), "{seen}");
        let sought =
            server.asked("stranger GET /settings/entries?query=key==(b or d or e or f)", 200).await?;
        assert_eq!(sought["totalRecords"], 0, "{sought}");
        let all = server.asked("admin GET /settings/entries", 200).await?;
        assert_eq!(keys(&all), ["a", "b", "c", "d", "e", "f"], "{all}");
        for (number, status) in [(0, 200), (1, 404), (2, 200), (3, 404), (4, 404), (5, 404)] {
            server
                .asked(
                    &format!("stranger GET /settings/entries/00000000-0000-4000-8000-00000000000{number}"),
                    status,
                )
                .await?;
        }
        let entry =
            |scope: &str, user: &str| json!({"scope": scope, "key": "new", "userId": user, "value": 2});
        for (body, status) in [
            (entry("ui", &stranger), 204),
            // The key already exists in this scope and for this user.
            (entry("ui", &stranger), 400),
            (entry("ui", other), 403),
            (entry("mail", &stranger), 403),
            (json!({"scope": "mail", "key": "new", "value": 2}), 403),
        ] {
            server.asked(&format!("stranger POST /settings/entries\n{body}"), status).await?;
        }
        // Settings of others can be neither taken over nor deleted.
        let taken = json!({"scope": "ui", "key": "d", "userId": stranger, "value": 3});
        server
            .asked(
                &format!("stranger PUT /settings/entries/00000000-0000-4000-8000-000000000003\n{taken}"),
                403,
            )
            .await?;
        server.asked("stranger DELETE /settings/entries/00000000-0000-4000-8000-000000000003", 403).await?;
        server.asked("stranger DELETE /settings/entries/00000000-0000-4000-8000-000000000002", 204).await?;
    }
    Ok(())
}

/// More entries than kinds without an index have.
const N_USERS: u32 = 220;

fn user(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// An entry is compared with those of the same names and the same user, however many users have one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_entry_is_refused_among_those_of_many_users() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for (path, names, made, refused) in [
            ("/settings/entries", json!({"scope": "ui", "key": "locale"}), 204, 400),
            ("/user/settings", json!({"scope": "ui", "key": "locale"}), 201, 400),
            ("/configurations/entries", json!({"module": "ORG", "configName": "locale"}), 201, 422),
        ] {
            let post = async |more: Value, status: u16| {
                let mut entry = names.clone();
                entry["value"] = "x".into();
                for (name, value) in more.as_object().into_iter().flatten() {
                    entry[name] = value.clone();
                }
                server.asked(&format!("admin POST {path}\n{entry}"), status).await
            };
            for n in 0..N_USERS {
                post(json!({"userId": user(n)}), made).await?;
            }
            post(json!({"userId": user(7)}), refused).await?;
            post(json!({}), made).await?;
            post(json!({}), refused).await?;
            if path != "/configurations/entries" {
                continue;
            }
            for more in [json!({"code": "a"}), json!({"code": "a", "userId": user(7)}), json!({"code": "b"})]
            {
                post(more.clone(), made).await?;
                post(more, refused).await?;
            }
            post(json!({"code": "", "userId": user(8).to_uppercase()}), refused).await?;
            post(json!({"enabled": false}), made).await?;
        }
    }
    Ok(())
}
