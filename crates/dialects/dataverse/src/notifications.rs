//! Notifications of users: `/api/notifications`.

use pinakes_store::{Column, Direction, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, stored};

/// Notifications by number: body is a [`Notification`].
pub(crate) static NOTIFICATION: Kind = Kind {
    columns: &[
        Column::one("user", Type::Integer),
        Column::one("number", Type::Integer),
        Column::one("isRead", Type::Boolean),
    ],
    indexes: &[Index::on(&["user"])],
    ..Kind::named("dataverse_notification")
};

/// A notification.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    /// Number.
    pub number: i64,
    /// The recipient.
    pub user: i64,
    /// `CREATEDV`, `SUBMITTEDDS`, …
    #[serde(rename = "type")]
    pub notice: String,
    /// When it was sent.
    pub sent: String,
    /// Whether it was read.
    pub is_read: bool,
    /// Its subject, in the form of the API.
    #[serde(default)]
    pub more: Map<String, Value>,
}

/// The version of the guides that notifications link to.
const GUIDES_VERSION: &str = "6.11";

/// The contents of a notification.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    notice: &'static str,
    more: Map<String, Value>,
}

impl Notice {
    /// Returns a notification of that kind, without a subject.
    pub(crate) fn of(notice: &'static str) -> Self {
        Self { notice, more: Map::new() }
    }

    /// Adds a member that describes the subject.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

/// Sends a notification to a user.
pub(crate) fn send(
    txn: &mut Txn<'_>,
    number: i64,
    now: &str,
    user: i64,
    notice: Notice,
) -> Result<(), ApiError> {
    let Notice { notice, more } = notice;
    let notification =
        Notification { number, user, notice: notice.to_owned(), sent: now.to_owned(), is_read: false, more };
    stored::insert(txn, &NOTIFICATION, &number.to_string(), &notification)
}

/// Removes the notifications of a user who is being deleted.
pub(crate) fn remove_of_user(txn: &mut Txn<'_>, user: i64) -> Result<(), ApiError> {
    for record in txn.find(&NOTIFICATION, &Query::filter(Expr::Is("user".into(), user.into())))? {
        txn.delete(&NOTIFICATION, &record.id)?;
    }
    Ok(())
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/notifications/all", list)
        .get("/notifications/unreadCount", count_unread)
        .put("/notifications/{id}/markAsRead", mark_read)
        .delete("/notifications/{id}", delete)
        .get("/notifications/mutedEmails", no_muting)
        .put("/notifications/mutedEmails/{kind}", no_muting)
        .delete("/notifications/mutedEmails/{kind}", no_muting)
        .get("/notifications/mutedNotifications", no_muting)
        .put("/notifications/mutedNotifications/{kind}", no_muting)
        .delete("/notifications/mutedNotifications/{kind}", no_muting)
}

impl Notification {
    fn json(&self, in_app: bool, brand: &str) -> Value {
        let mut map = Map::new();
        map.insert("id".into(), self.number.into());
        map.insert("type".into(), self.notice.as_str().into());
        map.insert("displayAsRead".into(), self.is_read.into());
        map.insert("sentTimestamp".into(), self.sent.as_str().into());
        if in_app {
            map.insert("installationBrandName".into(), brand.into());
            map.insert("userGuidesBaseUrl".into(), "https://guides.dataverse.org".into());
            map.insert("userGuidesVersion".into(), GUIDES_VERSION.into());
            map.insert("userGuidesSectionPath".into(), "user/index.html".into());
        } else {
            let title = self.more.get("datasetDisplayName").and_then(Value::as_str);
            let subject = format!("{brand}: {}", subject(&self.notice, title));
            let said = self.more.get("text").and_then(Value::as_str).unwrap_or(&subject);
            map.insert("messageText".into(), format!("Hello, \n{said}").into());
            map.insert("subjectText".into(), subject.into());
        }
        let shown = self.more.iter().filter(|it| it.0 != "text");
        map.extend(shown.map(|(k, v)| (k.clone(), v.clone())));
        Value::Object(map)
    }
}

/// Returns the subject line of a notification, with the dataset's title if that is known.
fn subject(notice: &str, title: Option<&str>) -> String {
    let dataset = |what: &str| match title {
        Some(title) => format!("Dataset \"{title}\" {what}"),
        None => format!("A dataset {what}"),
    };
    let text = match notice {
        "DATASETCREATED" => return dataset("has been created"),
        "SUBMITTEDDS" => return dataset("has been submitted for review"),
        "RETURNEDDS" => return dataset("has been returned"),
        "PUBLISHEDDS" => return dataset("has been published"),
        "DATASETMOVED" => return dataset("has been moved"),
        "DATASETMENTIONED" => return dataset("has been cited"),
        "CREATEACC" => "Your account has been created",
        "CREATEDV" => "Your dataverse has been created",
        "INGESTCOMPLETED" => "Your tables have been read",
        "INGESTCOMPLETEDWITHERRORS" => "Some of your tables could not be read",
        "ASSIGNROLE" => "You have been assigned a role",
        "REVOKEROLE" => "Your role has been revoked",
        "REQUESTFILEACCESS" => "Access has been requested for a restricted file",
        "REQUESTEDFILEACCESS" => "You have requested access to a restricted file",
        "GRANTFILEACCESS" => "You have been granted access to a restricted file",
        "REJECTFILEACCESS" => "Your request for access to a restricted file has been rejected",
        other => other,
    };
    text.to_owned()
}

async fn list(call: Call) -> Answer {
    let user = call.asker.user()?.id;
    let only_unread = call.query.is_true("onlyUnread");
    let in_app = call.query.is_true("inAppNotificationFormat");
    let (limit, offset) = crate::datasets::show::window(&call)?;
    let limit = limit.unwrap_or(1000).min(1000);
    let find = move |view: &mut View<'_>| -> Result<(u64, Vec<Notification>, String), ApiError> {
        let mut filter = Expr::Is("user".into(), user.into());
        if only_unread {
            filter = filter.and(Expr::Is("isRead".into(), false.into()));
        }
        let n_all = view.count(&NOTIFICATION, &filter)?;
        let query = Query::filter(filter)
            .sorted("number", Direction::Descending)
            .window(offset.unsigned_abs(), limit.unsigned_abs());
        let brand = crate::datasets::show::publisher(view)?;
        Ok((n_all, stored::find(view, &NOTIFICATION, &query)?, brand))
    };
    let (n_all, found, brand) = call.db().read(Weight::Scan, find).await?;
    envelope::page(n_all, found.iter().map(|it| it.json(in_app, &brand)).collect())
}

async fn count_unread(call: Call) -> Answer {
    let user = call.asker.user()?.id;
    let count = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        let filter = Expr::Is("user".into(), user.into()).and(Expr::Is("isRead".into(), false.into()));
        Ok(view.count(&NOTIFICATION, &filter)?)
    };
    envelope::ok(json!({"unreadCount": call.db().read(Weight::Scan, count).await?}))
}

/// Returns the notification of the path, if it is the caller's.
fn own(view: &mut View<'_>, id: &str, user: i64) -> Result<Notification, ApiError> {
    let found: Option<Notification> = stored::get(view, &NOTIFICATION, id)?;
    let missing = || ApiError::not_found(format!("Notification {id} not found."));
    found.filter(|it| it.user == user).ok_or_else(missing)
}

async fn mark_read(call: Call) -> Answer {
    let (user, id) = (call.asker.user()?.id, call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut notification = own(txn, &id, user)?;
        notification.is_read = true;
        stored::put(txn, &NOTIFICATION, &id, &notification)
    };
    call.db().write(write).await?;
    envelope::message(format!("Notification {} marked as read.", call.param("id")))
}

async fn delete(call: Call) -> Answer {
    let (user, id) = (call.asker.user()?.id, call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        own(txn, &id, user)?;
        txn.delete(&NOTIFICATION, &id)?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message(format!("Notification {} deleted.", call.param("id")))
}

/// Refuses to mute notifications: no mail is sent and every notification is kept, as in the original unless muting is
/// enabled.
async fn no_muting(call: Call) -> Answer {
    call.asker.user()?;
    Err(ApiError::not_found("Notification muting not enabled."))
}

/// Returns the users who may edit a dataset by a role on it.
pub(crate) fn editors(view: &mut View<'_>, dataset: &crate::datasets::Dataset) -> Result<Vec<i64>, ApiError> {
    crate::permissions::holders_of(view, &[dataset.id], &[Permission::EditDataset])
}

/// Returns the users who may see a draft, or download restricted files, by a role on the dataset or on its collection:
/// all of them are notified of a publication.
pub(crate) fn insiders(
    view: &mut View<'_>,
    dataset: &crate::datasets::Dataset,
) -> Result<Vec<i64>, ApiError> {
    let objects = [dataset.id, dataset.owner];
    let any = [Permission::ViewUnpublishedDataset, Permission::DownloadFile];
    crate::permissions::holders_of(view, &objects, &any)
}

/// Returns the users who may publish a dataset by a role on it or on its collection.
pub(crate) fn curators(
    view: &mut View<'_>,
    dataset: &crate::datasets::Dataset,
) -> Result<Vec<i64>, ApiError> {
    let objects = [dataset.id, dataset.owner];
    crate::permissions::holders_of(view, &objects, &[Permission::PublishDataset])
}

/// Returns the users who may grant downloads of a file, by a role on it, its dataset or its collection.
pub(crate) fn file_managers(
    view: &mut View<'_>,
    file: i64,
    dataset: &crate::datasets::Dataset,
) -> Result<Vec<i64>, ApiError> {
    let objects = [file, dataset.id, dataset.owner];
    let any = [Permission::ManageFilePermissions, Permission::ManageDatasetPermissions];
    crate::permissions::holders_of(view, &objects, &any)
}
