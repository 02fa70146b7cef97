//! Initialisation of a new tenant: root collection, licences, settings and superuser (section 0.5 of the contract).

use pinakes_accounts::{Password, User as Account};
use pinakes_http::Db;
use pinakes_store::{Txn, Weight};
use serde_json::json;

use crate::app::Dataverse;
use crate::collections::{self, COLLECTION, Collection, ROOT};
use crate::error::ApiError;
use crate::grants::{Assigned, GRANT, Grant, grant_id};
use crate::licenses::{LICENSE, License};
use crate::site_settings::SETTING;
use crate::users::{self, User};
use crate::{roles, stored};

/// Facets of the root collection.
const FACETS: [&str; 4] = ["authorName", "subject", "keywordValue", "dateOfDeposit"];
/// Name of the superuser.
const ADMIN: &str = "dataverseAdmin";

/// Initialises a tenant unless that was done before.
pub(crate) async fn prepare(app: &Dataverse, db: &Db) -> Result<(), ApiError> {
    let is_there = db.read(Weight::Point, |view| view.has(&COLLECTION, &ROOT.to_string())).await;
    if is_there.map_err(ApiError::from)? {
        return Ok(());
    }
    let admin = match app.settings.admin_password.as_str() {
        "" => None,
        text => {
            let password = Password::new(text)?;
            let mut account = app.context.accounts().new_user(ADMIN);
            account.email = Some(admin_email(app));
            account.password = Some(password.hash_blocking(app.context.entropy())?);
            Some(account)
        }
    };
    let (app, now) = (app.clone(), app.now());
    db.write(move |txn| load(txn, &app, &now, admin.as_ref())).await
}

fn admin_email(app: &Dataverse) -> String {
    let configured = app.settings.system_email.as_str();
    if configured.is_empty() { "dataverse@localhost".to_owned() } else { configured.to_owned() }
}

fn load(txn: &mut Txn<'_>, app: &Dataverse, now: &str, admin: Option<&Account>) -> Result<(), ApiError> {
    if txn.has(&COLLECTION, &ROOT.to_string())? {
        return Ok(());
    }
    let root = Collection {
        id: ROOT,
        alias: "root".to_owned(),
        name: app.settings.root_name.clone(),
        description: Some("The root dataverse.".to_owned()),
        dataverse_type: "UNCATEGORIZED".to_owned(),
        contacts: vec!["root@mailinator.com".to_owned()],
        creation_date: now.to_owned(),
        creator: admin.map(|_| 1),
        publication_date: Some(now.to_owned()),
        metadata_blocks: Some(vec!["citation".to_owned()]),
        facets: Some(FACETS.iter().map(|&it| it.to_owned()).collect()),
        ..Collection::default()
    };
    collections::put(txn, &root)?;
    for license in licenses() {
        stored::put(txn, &LICENSE, &license.id.to_string(), &license)?;
    }
    let settings = [(":AllowSignUp", "yes"), (":BuiltinUsersKey", app.settings.builtin_users_key.as_str())];
    for (name, value) in settings.into_iter().filter(|it| !it.1.is_empty()) {
        txn.put(&SETTING, name, &json!({"value": value}))?;
    }
    if let Some(account) = admin {
        add_admin(txn, app, now, account)?;
    }
    if app.settings.open_deposit {
        grant(txn, ":authenticated-users", Assigned { id: 2, role: roles::FULL_CONTRIBUTOR })?;
    }
    Ok(())
}

fn grant(txn: &mut Txn<'_>, assignee: &str, assigned: Assigned) -> Result<(), ApiError> {
    let grant = Grant { object: ROOT, assignee: assignee.to_owned(), roles: vec![assigned] };
    stored::put(txn, &GRANT, &grant_id(ROOT, assignee), &grant)
}

fn add_admin(txn: &mut Txn<'_>, app: &Dataverse, now: &str, account: &Account) -> Result<(), ApiError> {
    pinakes_accounts::user::insert(txn, account)?;
    let user = User {
        id: 1,
        name: ADMIN.to_owned(),
        account: Some(account.id.clone()),
        first_name: "Dataverse".to_owned(),
        last_name: "Admin".to_owned(),
        email: admin_email(app),
        affiliation: Some("Dataverse.org".to_owned()),
        position: Some("Admin".to_owned()),
        superuser: true,
        created_time: now.to_owned(),
        authentication_provider_id: "builtin".to_owned(),
        persistent_user_id: ADMIN.to_owned(),
        rate_limit_tier: 1,
        ..User::default()
    };
    users::put(txn, &user)?;
    grant(txn, "@dataverseAdmin", Assigned { id: 1, role: roles::ADMIN })
}

/// Returns the licences of a new installation.
fn licenses() -> [License; 2] {
    let spdx = |id: &str| (Some(id.to_owned()), Some("SPDX".to_owned()));
    let (cc0, scheme) = spdx("CC0-1.0");
    let (cc_by, _) = spdx("CC-BY-4.0");
    [
        License {
            id: 1,
            name: "CC0 1.0".to_owned(),
            short_description: "Creative Commons CC0 1.0 Universal Public Domain Dedication.".to_owned(),
            uri: "http://creativecommons.org/publicdomain/zero/1.0".to_owned(),
            icon_url: Some("https://licensebuttons.net/p/zero/1.0/88x31.png".to_owned()),
            active: true,
            is_default: true,
            sort_order: 1,
            rights_identifier: cc0,
            rights_identifier_scheme: scheme.clone(),
            scheme_uri: Some("https://spdx.org/licenses/".to_owned()),
            language_code: Some("en".to_owned()),
        },
        License {
            id: 2,
            name: "CC BY 4.0".to_owned(),
            short_description: "Creative Commons Attribution 4.0 International License.".to_owned(),
            uri: "http://creativecommons.org/licenses/by/4.0".to_owned(),
            icon_url: Some("https://licensebuttons.net/l/by/4.0/88x31.png".to_owned()),
            active: true,
            is_default: false,
            sort_order: 2,
            rights_identifier: cc_by,
            rights_identifier_scheme: scheme,
            scheme_uri: Some("https://spdx.org/licenses/".to_owned()),
            language_code: Some("en".to_owned()),
        },
    ]
}
