//! `POST /source-storage/records/matching`: returns the ids of the records whose fields have given values.

use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Expr, Path, Query, View, Weight};
use serde_json::{Map, Value, json};

use super::{EXTERNAL_IDS, SOURCE_RECORD, access};
use crate::data_import::criteria::{Criterion, Qualifier};
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::source_records::marc::MarcPath;

/// Default number of identifiers in an answer.
const DEFAULT_LIMIT: u64 = 1_000;

pub(super) fn routes(routes: Routes) -> Routes {
    routes.post(
        "/source-storage/records/matching",
        access("source-storage.records.matching.collection.post"),
        search,
    )
}

/// A search by field values.
#[derive(Debug)]
struct Search {
    record_type: String,
    filters: Vec<Filter>,
    is_any: bool,
}

#[derive(Debug)]
struct Filter {
    path: MarcPath,
    values: Vec<String>,
    criterion: Criterion,
    qualifier: Option<Qualifier>,
}

impl Search {
    fn of(body: &Map<String, Value>) -> Result<Self, FolioError> {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let record_type = text("recordType").unwrap_or("MARC_BIB");
        let list = body.get("filters").and_then(Value::as_array).into_iter().flatten();
        let filters = list.map(filter).collect::<Result<Vec<_>, _>>()?;
        if filters.is_empty() {
            return Err(FolioError::unprocessable(Fault::missing("filters")));
        }
        let is_any = text("logicalOperator").is_some_and(|it| it.eq_ignore_ascii_case("or"));
        Ok(Self { record_type: record_type.to_owned(), filters, is_any })
    }

    /// Returns the condition by which the store finds candidates, which are then compared.
    fn expr(&self) -> Expr {
        let mut all = vec![
            Expr::Is("recordType".into(), self.record_type.as_str().into()),
            Expr::Is("state".into(), "ACTUAL".into()),
        ];
        let filters: Vec<Expr> = self.filters.iter().map(Filter::in_store).collect();
        match self.is_any {
            true => all.push(Expr::Or(filters)),
            false => all.extend(filters),
        }
        Expr::And(all)
    }

    /// Passes each matching record to `visit`.
    fn for_each(
        &self,
        view: &mut View<'_>,
        mut visit: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(), FolioError> {
        view.for_each(&SOURCE_RECORD, &Query::filter(self.expr()), |record| {
            let Ok(body) = record.json() else { return ControlFlow::Continue(()) };
            let fits = match self.is_any {
                true => self.filters.iter().any(|it| it.fits(&body)),
                false => self.filters.iter().all(|it| it.fits(&body)),
            };
            if fits { visit(&body) } else { ControlFlow::Continue(()) }
        })?;
        Ok(())
    }
}

impl Filter {
    /// Returns a condition that every record satisfies which fits, but perhaps others as well.
    fn in_store(&self) -> Expr {
        let at = |path: Path| self.criterion.in_store(&path, &self.values, self.qualifier.as_ref());
        if self.path.is("999", ['f', 'f'], Some('s')) {
            at("matchedId".into())
        } else if self.path.is("999", ['f', 'f'], Some('i')) {
            let of = |name: &&str| at(Path::steps(["externalIdsHolder", name]));
            Expr::Or(EXTERNAL_IDS.iter().map(of).collect())
        } else {
            at(self.path.in_source_record())
        }
    }

    fn fits(&self, body: &Value) -> bool {
        let content = body.pointer("/parsedRecord/content").unwrap_or(&Value::Null);
        let found = self.path.values_in(content);
        let found = found.into_iter().filter_map(|it| match &self.qualifier {
            None => Some(it.to_owned()),
            Some(qualifier) => qualifier.apply(it),
        });
        let mut found = found;
        found.any(|it| self.values.iter().any(|value| self.criterion.holds(value, &it)))
    }
}

fn filter(value: &Value) -> Result<Filter, FolioError> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let tag = text("field");
    if tag.len() != 3 {
        return Err(FolioError::bad_request(format!("filters: field {tag:?} is no tag of three characters")));
    }
    let values = value.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
    let name = Some(text("matchType")).filter(|it| !it.is_empty()).unwrap_or("EXACTLY_MATCHES");
    let criterion = Criterion::named(name)
        .ok_or_else(|| FolioError::bad_request(format!("filters: matchType {name:?} is not known")))?;
    let path = MarcPath::new(tag, text("indicator1"), text("indicator2"), text("subfield"));
    Ok(Filter { path, values, criterion, qualifier: value.get("qualifier").and_then(Qualifier::read) })
}

async fn search(mut call: Call) -> Answer {
    let body = call.object().await?;
    let search = Search::of(&body)?;
    let number = |name: &str, default: u64| body.get(name).and_then(Value::as_u64).unwrap_or(default);
    let (limit, offset) = (number("limit", DEFAULT_LIMIT), number("offset", 0));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (mut identifiers, mut total) = (Vec::new(), 0_u64);
        search.for_each(view, |body| {
            if offset <= total && (identifiers.len() as u64) < limit {
                let external = EXTERNAL_IDS
                    .iter()
                    .find_map(|name| body.pointer(&format!("/externalIdsHolder/{name}")))
                    .cloned()
                    .unwrap_or_default();
                let id = body.get("matchedId").cloned().unwrap_or_default();
                identifiers.push(json!({"recordId": id, "externalId": external}));
            }
            total += 1;
            ControlFlow::Continue(())
        })?;
        Ok(json!({"identifiers": identifiers, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
