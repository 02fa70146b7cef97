//! Accounts over a real store: users, passwords, tokens, and which changes a cached caller notices.

use std::error::Error;

use pinakes_accounts::{
    Accounts, AccountsError, Caller, Clock, Entropy, KINDS, Login, NewToken, Password, Resolved, Secret,
    Settings, functional, token, user,
};
use pinakes_store::{Catalogue, Expr, Limits, Location, Query, Tenant, Weight};
use serde_json::{Map, Value, json};

type Failure = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), Failure>;

/// 2026-02-01T10:00:00Z.
const NOW_MS: i64 = 1_769_940_000_000;

struct Site {
    accounts: Accounts,
    catalogue: Catalogue,
    tenant: Tenant,
    clock: Clock,
    _folder: tempfile::TempDir,
}

fn accounts(clock: &Clock) -> Result<Accounts, AccountsError> {
    let settings = Settings {
        secret: Secret::from_text("a secret of the tests")?,
        everyone: vec!["everyone".into()],
        clock: clock.clone(),
        entropy: Entropy::seeded(42),
    };
    Ok(Accounts::new(settings, &Limits::default()))
}

async fn site() -> Result<Site, Failure> {
    // Creating tenants waits for the disk.
    tokio::task::spawn_blocking(new_site).await?
}

fn new_site() -> Result<Site, Failure> {
    let folder = tempfile::tempdir()?;
    let catalogue = Catalogue::open(Location::Folder(folder.path().into()), KINDS, Limits::default())?;
    let tenant = catalogue.create_tenant("default", "")?;
    let clock = Clock::fixed(NOW_MS);
    Ok(Site { accounts: accounts(&clock)?, catalogue, tenant, clock, _folder: folder })
}

impl Site {
    async fn user(&self, name: &str, groups: &[&str]) -> Result<user::User, AccountsError> {
        let mut user = self.accounts.new_user(name);
        user.groups = groups.iter().map(|&it| it.to_owned()).collect();
        self.accounts.create(&self.tenant, user, None).await
    }

    async fn groups_of(&self, token: &str) -> Result<Option<Vec<String>>, AccountsError> {
        Ok(match self.accounts.resolve(&self.tenant, token).await? {
            Resolved::Caller(caller) => Some(caller.groups.to_vec()),
            _ => None,
        })
    }
}

fn claims(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|&it| it.to_owned()).collect()
}

#[tokio::test]
async fn users_are_made_found_changed_and_removed() -> Outcome {
    let site = site().await?;
    let (accounts, tenant) = (&site.accounts, &site.tenant);
    let made = site.user("ingestor", &["ingestor", "ingestor", "admin"]).await?;
    assert_eq!((made.version, made.groups.clone()), (1, owned(&["ingestor", "admin"])));
    assert_eq!(accounts.by_username(tenant, "ingestor").await?.as_ref(), Some(&made));
    assert_eq!(accounts.by_username(tenant, "Ingestor").await?, None);

    let uuid = made.uuid;
    let by_uuid = tenant.read(Weight::Point, move |view| user::by_uuid(view, uuid)).await?;
    assert_eq!(by_uuid.as_ref(), Some(&made));

    site.clock.advance_ms(5);
    let changed = accounts.change(tenant, &made.id, |it| it.email = Some("i@your.site".into())).await?;
    assert_eq!((changed.version, changed.updated_at_ms, changed.created_at_ms), (2, NOW_MS + 5, NOW_MS));
    let same = accounts.change(tenant, &made.id, |it| it.email = Some("i@your.site".into())).await?;
    assert_eq!(same.version, 2, "nothing changed, nothing written");
    let kept = accounts.change(tenant, &made.id, |it| it.id = "0".repeat(24)).await?;
    assert_eq!(kept.id, made.id, "ids stay");

    let listed = tenant.read(Weight::Scan, |view| user::find(view, &Query::filter(Expr::All))).await?;
    assert_eq!(listed, [changed]);
    assert_eq!(accounts.remove(tenant, &made.id).await?.id, made.id);
    assert!(matches!(accounts.remove(tenant, &made.id).await, Err(AccountsError::UnknownUser(_))));
    assert_eq!(tenant.check()?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn names_and_ids_are_unique() -> Outcome {
    let site = site().await?;
    let first = site.user("a", &[]).await?;
    let second = site.user("b", &[]).await?;
    assert!(matches!(site.user("a", &[]).await, Err(AccountsError::UsernameTaken(name)) if name == "a"));
    let rename = site.accounts.change(&site.tenant, &second.id, |it| it.username = "a".into()).await;
    assert!(matches!(rename, Err(AccountsError::UsernameTaken(_))), "{rename:?}");
    let twin = user::User::with_uuid("c", first.uuid, NOW_MS);
    let refused = site.accounts.create(&site.tenant, twin, None).await;
    assert!(matches!(refused, Err(AccountsError::IdTaken { .. })), "{refused:?}");
    assert!(matches!(site.user(" c", &[]).await, Err(AccountsError::Username { .. })));
    Ok(())
}

#[tokio::test]
async fn passwords_open_the_door() -> Outcome {
    let site = site().await?;
    let (accounts, tenant) = (&site.accounts, &site.tenant);
    let right = Password::new("aman")?;
    let user = accounts.create(tenant, accounts.new_user("ingestor"), Some(right.clone())).await?;
    let welcome = accounts.log_in(tenant, "ingestor", right.clone()).await?;
    assert!(matches!(welcome, Login::Welcome(it) if it.id == user.id));
    for (name, password) in [("ingestor", "amen"), ("nobody", "aman")] {
        let login = accounts.log_in(tenant, name, Password::new(password)?).await?;
        assert!(matches!(login, Login::Refused), "{name}");
    }
    accounts.change(tenant, &user.id, |it| it.active = false).await?;
    assert!(matches!(accounts.log_in(tenant, "ingestor", right).await?, Login::Refused), "not active");
    accounts.change(tenant, &user.id, |it| it.active = true).await?;
    accounts.set_password(tenant, &user.id, Password::new("new")?).await?;
    assert!(matches!(accounts.log_in(tenant, "ingestor", Password::new("new")?).await?, Login::Welcome(_)));
    Ok(())
}

#[tokio::test]
async fn web_tokens_name_their_user_in_three_ways() -> Outcome {
    let site = site().await?;
    let user = site.user("ingestor", &["g1"]).await?;
    for body in [
        json!({"_id": user.id, "username": "somebody else"}),
        json!({"sub": "somebody else", "user_id": user.uuid.to_string(), "tenant": "default"}),
        json!({"sub": "ingestor"}),
    ] {
        let token = site.accounts.sign_for("default", claims(body.clone()), 3600);
        assert_eq!(site.groups_of(&token).await?, Some(owned(&["g1", "everyone"])), "{body}");
    }
    for body in [
        json!({"_id": "6b00e640a38974763ecd9ea4"}),
        json!({"user_id": "not a uuid"}),
        json!({"username": "ingestor"}),
        json!({"_id": user.id, "aud": "refresh"}),
    ] {
        let token = site.accounts.sign_for("default", claims(body.clone()), 3600);
        assert_eq!(site.groups_of(&token).await?, None, "{body}");
    }
    let foreign = site.accounts.sign_for("default", claims(json!({"sub": "ingestor", "tenant": "b"})), 3600);
    let resolved = site.accounts.resolve(&site.tenant, &foreign).await?;
    assert!(matches!(resolved, Resolved::OtherTenant(name) if name == "b"));
    Ok(())
}

#[tokio::test]
async fn tokens_of_one_tenant_do_not_hold_in_another() -> Outcome {
    let site = site().await?;
    let user = site.user("ingestor", &["g1"]).await?;
    let catalogue = site.catalogue.clone();
    let other = tokio::task::spawn_blocking(move || catalogue.create_tenant("other", "")).await??;
    let same = user.clone();
    other.write(move |txn| user::insert(txn, &same)).await?;
    let token = site.accounts.sign_for("default", claims(json!({"_id": user.id})), 3600);
    assert!(matches!(site.accounts.resolve(&other, &token).await?, Resolved::Invalid));
    assert!(matches!(site.accounts.resolve(&site.tenant, &token).await?, Resolved::Caller(_)));
    // A token that names its tenant is recognised as another tenant's; one with a false tenant is not.
    let named = claims(json!({"_id": user.id, "tenant": "default"}));
    let token = site.accounts.sign_for("default", named.clone(), 3600);
    let resolved = site.accounts.resolve(&other, &token).await?;
    assert!(matches!(resolved, Resolved::OtherTenant(name) if name == "default"));
    let forged = site.accounts.sign_for("third", named, 3600);
    assert!(matches!(site.accounts.resolve(&other, &forged).await?, Resolved::Invalid));
    Ok(())
}

#[tokio::test]
async fn kept_callers_notice_changes_and_expiry() -> Outcome {
    let site = site().await?;
    let (accounts, tenant) = (&site.accounts, &site.tenant);
    let user = site.user("ingestor", &["g1"]).await?;
    let token = accounts.sign_for("default", claims(json!({"_id": user.id})), 10);
    assert_eq!(site.groups_of(&token).await?, Some(owned(&["g1", "everyone"])));

    // A change through the same process takes effect at once.
    accounts.change(tenant, &user.id, |it| it.groups = owned(&["g2"])).await?;
    assert_eq!(site.groups_of(&token).await?, Some(owned(&["g2", "everyone"])));

    // A change by another process, here a second instance of accounts over the same data, takes effect within
    // a second.
    let elsewhere = self::accounts(&site.clock)?;
    elsewhere.change(tenant, &user.id, |it| it.groups = owned(&["g3"])).await?;
    assert_eq!(site.groups_of(&token).await?, Some(owned(&["g2", "everyone"])));
    site.clock.advance_ms(1_000);
    assert_eq!(site.groups_of(&token).await?, Some(owned(&["g3", "everyone"])));

    elsewhere.remove(tenant, &user.id).await?;
    site.clock.advance_ms(1_000);
    assert_eq!(site.groups_of(&token).await?, None);
    site.clock.advance_ms(10_000);
    assert!(matches!(accounts.resolve(tenant, &token).await?, Resolved::Expired));
    Ok(())
}

#[tokio::test]
async fn a_kept_caller_expires_with_its_token() -> Outcome {
    let site = site().await?;
    let user = site.user("ingestor", &[]).await?;
    let token = site.accounts.sign_for("default", claims(json!({"_id": user.id})), 2);
    assert!(site.groups_of(&token).await?.is_some());
    site.clock.advance_ms(2_000);
    assert!(matches!(site.accounts.resolve(&site.tenant, &token).await?, Resolved::Expired));
    Ok(())
}

#[tokio::test]
async fn api_tokens_are_restricted_expire_and_go_with_their_user() -> Outcome {
    let site = site().await?;
    let (accounts, tenant) = (&site.accounts, &site.tenant);
    let user = site.user("ingestor", &["g1", "g2"]).await?;
    let new = |name: &str, groups: Option<Vec<String>>, expires_at_ms| NewToken {
        user: user.id.clone(),
        name: name.into(),
        groups,
        expires_at_ms,
    };
    let (all, kept) = accounts.create_token(tenant, new("all", None, None)).await?;
    let (few, _) =
        accounts.create_token(tenant, new("few", Some(owned(&["g2", "g9"])), Some(NOW_MS + 500))).await?;
    assert!(!format!("{kept:?}").contains(all.reveal()));
    assert_eq!(site.groups_of(all.reveal()).await?, Some(owned(&["g1", "g2", "everyone"])));
    assert_eq!(site.groups_of(few.reveal()).await?, Some(owned(&["g2"])));
    assert_eq!(site.groups_of("pnk_unknown").await?, None);
    let twice = accounts.create_token(tenant, new("all", None, None)).await;
    assert!(matches!(twice, Err(AccountsError::TokenNameTaken { .. })));

    site.clock.advance_ms(500);
    assert!(matches!(accounts.resolve(tenant, few.reveal()).await?, Resolved::Expired));
    accounts.remove_token(tenant, &few.id()).await?;
    assert!(matches!(accounts.resolve(tenant, few.reveal()).await?, Resolved::Expired | Resolved::Invalid));
    accounts.remove(tenant, &user.id).await?;
    assert_eq!(site.groups_of(all.reveal()).await?, None);
    assert_eq!(tenant.read(Weight::Scan, token::all).await?, []);
    let orphan = accounts.create_token(tenant, new("late", None, None)).await;
    assert!(matches!(orphan, Err(AccountsError::UnknownUser(_))));
    Ok(())
}

#[tokio::test]
async fn functional_accounts_are_made_and_refreshed() -> Outcome {
    let site = site().await?;
    let first = br#"[{"username":"admin","password":"2jf70TPNZsS","email":"a@your.site","role":"admin"},
                     {"username":"u1","password":"x","role":["g1","g2"],"global":true}, {"username":" bad"}]"#;
    let (list, problems) = functional::parse(first)?;
    assert_eq!(problems, []);
    let done = site.accounts.import_functional(&site.tenant, list.clone()).await?;
    assert_eq!((done.n_created, done.n_changed, done.n_same, done.problems.len()), (2, 0, 0, 1));
    let done = site.accounts.import_functional(&site.tenant, list).await?;
    assert_eq!((done.n_created, done.n_changed, done.n_same), (0, 0, 2));

    let (list, _) = functional::parse(br#"[{"username":"u1","password":"y","role":["g3"]}]"#)?;
    let done = site.accounts.import_functional(&site.tenant, list).await?;
    assert_eq!((done.n_created, done.n_changed, done.n_same), (0, 1, 0));
    let Login::Welcome(user) = site.accounts.log_in(&site.tenant, "u1", Password::new("y")?).await? else {
        return Err("the new password does not hold".into());
    };
    assert_eq!((user.groups.clone(), user.global), (owned(&["g3"]), false));
    Ok(())
}

#[tokio::test]
async fn global_users_have_their_group() -> Outcome {
    let site = site().await?;
    let mut user = site.accounts.new_user("g");
    user.global = true;
    let user = site.accounts.create(&site.tenant, user, None).await?;
    let token = site.accounts.sign_for("default", claims(json!({"_id": user.id})), 10);
    assert_eq!(site.groups_of(&token).await?, Some(owned(&["globalaccess", "everyone"])));
    assert!(Caller::anonymous().groups.is_empty());
    Ok(())
}
