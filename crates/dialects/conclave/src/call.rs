//! Requests that passed their access check, as handlers receive them.
//!
//! A handler that reads takes a [`Reading`], one that writes an [`Editing`], one that fills maps an [`Administering`].
//! Each can only be obtained by passing its check, so no handler can forget it.

use std::collections::BTreeMap;
use std::ops::Deref;

use axum::RequestPartsExt as _;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use pinakes_http::body;
use pinakes_store::{View, Weight};
use serde_json::Value;

use crate::app::{Asker, Conclave, Params, map_name};
use crate::edit::{Done, Edit, Found, History, find};
use crate::error::{ConclaveError, Result};
use crate::markup::gallery::{Descriptor, GALLERY, Galleries, Listed};
use crate::model::Topic;
use crate::names::DEFAULT_MAP;
use crate::text::Fields;

/// A request whose sender may read the map that it names.
#[derive(Clone)]
pub(crate) struct Reading {
    /// The server's parts.
    pub(crate) app: Conclave,
    /// The caller.
    pub(crate) asker: Asker,
    /// Name of the map; the default map if the path names none.
    pub(crate) map: String,
    /// Query parameters.
    pub(crate) params: Params,
    /// Header fields.
    pub(crate) headers: HeaderMap,
    listed: Listed,
}

impl FromRequestParts<Conclave> for Reading {
    type Rejection = ConclaveError;

    async fn from_request_parts(parts: &mut Parts, app: &Conclave) -> Result<Self> {
        let path: Path<BTreeMap<String, String>> = parts
            .extract()
            .await
            .map_err(|error| ConclaveError::bad_request(format!("the path cannot be read: {error}")))?;
        let map = path.get("map").map_or(DEFAULT_MAP, String::as_str);
        let map = map_name(map)?.to_owned();
        let call = Self::unchecked(parts, app, map).await?;
        call.asker.may_read()?;
        Ok(call)
    }
}

impl Reading {
    /// Returns a request without checking whether the caller may read: for signing in.
    pub(crate) async fn unchecked(parts: &mut Parts, app: &Conclave, map: String) -> Result<Self> {
        let asker = Asker::from_request_parts(parts, app).await?;
        let params = Params(Fields::parse(parts.uri.query().unwrap_or_default()));
        let (headers, listed) = (std::mem::take(&mut parts.headers), Listed::default());
        Ok(Self { app: app.clone(), asker, map, params, headers, listed })
    }

    /// Runs a read of some topics.
    pub(crate) async fn read<R: Send + 'static>(
        &self,
        weight: Weight,
        mut work: impl FnMut(&mut View<'_>, &str) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let map = self.map.clone();
        self.asker.db.read(weight, move |view| work(view, &map)).await
    }

    /// Returns a topic as it is stored, including what the reader may not see.
    pub(crate) async fn found(&self, id: &str) -> Result<Option<Found>> {
        let id = id.to_owned();
        self.read(Weight::Point, move |view, map| find(view, map, &id)).await
    }

    /// Returns a topic, reduced to what the reader may see. Errors: 404.
    pub(crate) async fn topic(&self, id: &str) -> Result<Topic> {
        let found = self.found(id).await?.ok_or_else(|| ConclaveError::no_topic(id))?;
        Ok(self.asker.filtered(found).topic)
    }

    /// Returns the prefix of links to topics of the map.
    pub(crate) fn link_base(&self) -> String {
        format!("/t/{}/", self.map)
    }

    /// Returns the galleries of the map.
    pub(crate) fn galleries(&self) -> Option<Galleries<'_>> {
        Galleries::of(&self.app.settings.galleries, &self.map, &self.listed)
    }

    /// Returns the part of the galleries' state that affects how a topic is rendered.
    pub(crate) fn mark_of_galleries(&self, topic: &Topic) -> Vec<String> {
        let Some(galleries) = self.galleries() else { return Vec::new() };
        let shown = topic.occurrences.iter().filter(|it| it.behaviour == GALLERY);
        shown.flat_map(|it| galleries.files(it).iter().map(Descriptor::mark).collect::<Vec<_>>()).collect()
    }

    /// Returns the body of the request, within the ordinary size limit.
    pub(crate) async fn received(&self, body: Body) -> Result<Bytes> {
        let limits = self.app.context.limits();
        Ok(body::receive(&self.headers, body, limits.body_bytes, limits).await?)
    }

    /// Returns the body as JSON. Errors: 400 with the position of the syntax error.
    pub(crate) async fn json(&self, body: Body) -> Result<Value> {
        let bytes = self.received(body).await?;
        body::parse_json(&bytes, self.app.context.limits())
            .map_err(|fault| ConclaveError::bad_request(format!("the body is no JSON: {fault}")))
    }

    /// Returns the fields of a form, and the request with the form's token checked. Checks no right by itself.
    pub(crate) async fn form(mut self, body: Body) -> Result<(Self, Fields)> {
        let bytes = self.received(body).await?;
        let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
        self.asker = self.asker.with_form(&fields);
        Ok((self, fields))
    }

    /// Checks that the caller may edit. Errors: 401, 403.
    pub(crate) fn editing(self) -> Result<Editing> {
        self.asker.may_edit()?;
        Ok(Editing(self))
    }
}

/// A request whose sender may edit, protected against cross-site request forgery.
#[derive(Clone)]
pub(crate) struct Editing(Reading);

impl Deref for Editing {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        &self.0
    }
}

impl FromRequestParts<Conclave> for Editing {
    type Rejection = ConclaveError;

    async fn from_request_parts(parts: &mut Parts, app: &Conclave) -> Result<Self> {
        Reading::from_request_parts(parts, app).await?.editing()
    }
}

impl Editing {
    /// Parses a posted form and checks that its sender may edit. Errors: 401, 403.
    pub(crate) async fn posted(reading: Reading, body: Body) -> Result<(Self, Fields)> {
        let (reading, fields) = reading.form(body).await?;
        Ok((reading.editing()?, fields))
    }

    /// Runs changes to the map in one transaction. The closure may run more than once.
    pub(crate) async fn write<R: Send + 'static>(
        &self,
        mut change: impl FnMut(&mut Edit<'_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<(R, Done)> {
        self.write_if(true, move |edit| change(edit)).await
    }

    /// Works like [`Self::write`], but without `is_kept` writes nothing and only counts what would be written.
    pub(crate) async fn write_if<R: Send + 'static>(
        &self,
        is_kept: bool,
        mut change: impl FnMut(&mut Edit<'_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<(R, Done)> {
        let (map, author) = (self.map.clone(), self.asker.author(self.app.now_ms()));
        let write = move |txn: &mut pinakes_store::Txn<'_>| {
            let mut edit = Edit::new(txn, &map, &author, History::Kept);
            let given = change(&mut edit)?;
            let done = if is_kept { edit.finish()? } else { edit.tally() };
            Ok::<_, ConclaveError>((given, done))
        };
        self.asker.db.write(write).await
    }
}

/// A request whose sender may fill and empty maps.
pub(crate) struct Administering(Reading);

impl Deref for Administering {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        &self.0
    }
}

impl FromRequestParts<Conclave> for Administering {
    type Rejection = ConclaveError;

    async fn from_request_parts(parts: &mut Parts, app: &Conclave) -> Result<Self> {
        let reading = Reading::from_request_parts(parts, app).await?;
        reading.asker.may_administer()?;
        Ok(Self(reading))
    }
}

/// Result of handlers.
pub(crate) type Answer = Result<Response>;
