//! User-supplied descriptions of a table's variables: labels, questions, notes, weights, groups. `PUT /api/edit/{id}`
//! takes them as DDI.
//!
//! They belong to a version: a row of the file stores them, and the ingested table stays unchanged.

use pinakes_store::{Txn, View};
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value, json};

use super::edit::{Editing, Editor, require_edit_or_401};
use super::{Found, Wanted, rows};
use crate::app::Call;
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;

/// Maximum nesting of elements.
const DEPTH: usize = 16;
/// Maximum number of elements of a body.
const ELEMENTS: usize = 1_000_000;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.put("/edit/{id}", edit)
}

/// An element with its contents.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }

    fn all<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |it| it.name == name)
    }

    fn text_of(&self, name: &str) -> Option<&str> {
        let named = self.children.iter().filter(|it| it.name == name);
        named.map(|it| it.text.trim()).find(|it| !it.is_empty())
    }

    /// Collects the outermost descendants with that name.
    fn gather<'e>(&'e self, name: &str, into: &mut Vec<&'e Self>) {
        for it in &self.children {
            if it.name == name {
                into.push(it);
            } else {
                it.gather(name, into);
            }
        }
    }
}

fn begun(start: &BytesStart<'_>) -> Element {
    let attributes = start
        .attributes()
        .flatten()
        .map(|it| (it.key.local_name().as_ref().to_owned(), it.value.clone().into_owned()));
    Element {
        name: start.local_name().as_ref().to_owned(),
        attributes: attributes.collect(),
        ..Element::default()
    }
}

/// Parses a document. Entities that it defines itself are not expanded.
///
/// Errors: 400 for invalid XML, and for documents nested too deeply or too large.
fn parse(bytes: &[u8]) -> Result<Element, ApiError> {
    let bad = |why: String| ApiError::bad_request(format!("The DDI cannot be read: {why}"));
    let mut reader = quick_xml::Reader::from_reader(bytes);
    let mut open = vec![Element::default()];
    let mut n_elements = 0;
    let closed = |open: &mut Vec<Element>| {
        if 1 < open.len()
            && let (Some(done), Some(parent)) = (open.pop(), open.last_mut())
        {
            parent.children.push(done);
        }
    };
    loop {
        let event = reader.read_event().map_err(|error| bad(error.to_string()))?;
        let last = open.last_mut();
        match (event, last) {
            (Event::Start(start), _) => {
                n_elements += 1;
                if DEPTH < open.len() || ELEMENTS < n_elements {
                    return Err(bad("it has too many elements, or they are nested too deeply".to_owned()));
                }
                open.push(begun(&start));
            }
            (Event::Empty(start), Some(last)) => last.children.push(begun(&start)),
            (Event::End(_), _) => closed(&mut open),
            (Event::Text(text), Some(last)) => last.text.push_str(&text),
            (Event::CData(text), Some(last)) => last.text.push_str(&text),
            (Event::GeneralRef(reference), Some(last)) => last.text.push_str(match &*reference {
                "amp" => "&",
                "lt" => "<",
                "gt" => ">",
                "quot" => "\"",
                "apos" => "'",
                _ => "",
            }),
            (Event::Eof, _) => break,
            _ => {}
        }
    }
    if 1 < open.len() {
        return Err(bad("it ends before its root does".to_owned()));
    }
    let document = open.pop().unwrap_or_default();
    if document.children.is_empty() {
        return Err(bad("it has no element".to_owned()));
    }
    Ok(document)
}

/// Returns the descriptions in a document: variables by number, and groups.
///
/// Errors: 400 for invalid numbers.
fn said(document: &Element) -> Result<Value, ApiError> {
    let (mut found, mut groups) = (Vec::new(), Vec::new());
    document.gather("var", &mut found);
    document.gather("varGrp", &mut groups);
    let mut variables = Map::new();
    for it in found {
        let id = it.attribute("ID").and_then(|it| it.strip_prefix('v')).unwrap_or_default();
        if id.parse::<i64>().is_err() {
            return Err(ApiError::bad_request(format!(
                "A variable has the ID {id:?}; expected v and a number."
            )));
        }
        variables.insert(id.to_owned(), variable(it)?);
    }
    let groups = groups.into_iter().map(|it| {
        json!({
            "id": it.attribute("ID"), "label": it.text_of("labl"),
            "variables": it.attribute("var").unwrap_or_default().split_whitespace().collect::<Vec<_>>(),
        })
    });
    Ok(json!({"variables": variables, "groups": groups.collect::<Vec<Value>>()}))
}

fn variable(it: &Element) -> Result<Value, ApiError> {
    let question = |name: &str| it.all("qstn").find_map(|it| it.text_of(name));
    let label = it.all("labl").find(|it| it.attribute("level").is_none_or(|it| it == "variable"));
    let notes = it.all("notes").find(|it| it.attribute("type").is_none()).map(|it| it.text.trim());
    let mut categories = Vec::new();
    for category in it.all("catgry") {
        let mut weighted = None;
        for statistic in category.all("catStat") {
            let number: f64 = statistic.text.trim().parse().map_err(|_| {
                let found = statistic.text.trim();
                ApiError::bad_request(format!("A category has the frequency {found:?}; expected a number."))
            })?;
            if statistic.attribute("wgtd").is_some() {
                weighted = Some(number);
            }
        }
        categories.push(json!({
            "value": category.text_of("catValu"), "label": category.text_of("labl"), "weightedFrequency": weighted,
        }));
    }
    let weight = it.attribute("wgt-var").and_then(|it| it.strip_prefix('v')?.parse::<i64>().ok());
    Ok(json!({
        "label": label.map(|it| it.text.trim()),
        "literalQuestion": question("qstnLit"),
        "interviewInstruction": question("ivuInstr"),
        "postQuestion": question("postQTxt"),
        "universe": it.text_of("universe"),
        "notes": notes.filter(|it| !it.is_empty()),
        "isWeightVar": it.attribute("wgt") == Some("wgt"),
        "weightVariableId": weight,
        "categories": categories,
    }))
}

/// Returns the variables of a file's table, with their descriptions in the version with that ordinal.
pub(crate) fn tables_in(view: &mut View<'_>, file: i64, ordinal: i64) -> Result<Option<Value>, ApiError> {
    let Some(mut tables) = rows::tables(view, file)? else { return Ok(None) };
    let row = rows::of_file(view, file)?.into_iter().find(|it| it.is_in(ordinal));
    if let Some(said) = row.and_then(|it| it.variables) {
        for table in tables.as_array_mut().into_iter().flatten() {
            table["variableGroups"] = said["groups"].clone();
            for variable in table["dataVariables"].as_array_mut().into_iter().flatten() {
                let id = variable["id"].to_string();
                put_into(variable, &said["variables"][id.as_str()]);
            }
        }
    }
    Ok(Some(tables))
}

fn put_into(variable: &mut Value, said: &Value) {
    for (name, value) in said.as_object().into_iter().flatten() {
        if name == "categories" {
            for category in variable["variableCategories"].as_array_mut().into_iter().flatten() {
                let own = value.as_array().into_iter().flatten().find(|it| it["value"] == category["value"]);
                let Some(own) = own else { continue };
                for name in ["label", "weightedFrequency"] {
                    if !own[name].is_null() {
                        category[name] = own[name].clone();
                    }
                }
            }
        } else if !value.is_null() {
            variable[name] = value.clone();
        }
    }
}

async fn edit(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let bytes = call.bytes().await?;
    let said = said(&parse(&bytes)?)?;
    let (editor, ids) = (Editor::of(&call), call.ids(2).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut ids = ids;
        let file = wanted.find(txn)?;
        let found = Found::of(txn, file)?;
        require_edit_or_401(txn, &editor, &found)?;
        if found.file.original.is_none() {
            return Err(ApiError::bad_request("This operation is only available for tabular files."));
        }
        let tables = rows::tables(txn, found.file.id)?.unwrap_or_default();
        let known = |id: &str| {
            let all = tables.as_array().into_iter().flatten();
            let mut all = all.flat_map(|it| it["dataVariables"].as_array().into_iter().flatten());
            id.parse::<i64>().is_ok_and(|id| all.any(|it| it["id"] == id))
        };
        if let Some(unknown) = said["variables"].as_object().and_then(|it| it.keys().find(|id| !known(id))) {
            return Err(ApiError::bad_request(format!("The file has no variable v{unknown}.")));
        }
        let mut editing = Editing::begin(txn, &editor, &wanted, &mut ids)?;
        let said = said.clone();
        editing.row(txn, &editor.app, &mut ids, move |row| row.variables = Some(said))?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message("Updated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_document_is_refused() {
        for (text, part) in
            [("", "no element"), ("yes", "no element"), ("<dataDscr><var ID='v1'>", "ends before")]
        {
            let why = parse(text.as_bytes()).unwrap_err().message;
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn a_description_is_read() {
        let text = b"<dataDscr><varGrp ID='VG1' var=' v7 v8'><labl>Both</labl></varGrp>\
            <var ID='v7' name='a' wgt-var='v8'><labl level='variable'>Sex &amp; age</labl><qstn><qstnLit>Who?</qstnLit></qstn>\
            <catgry><catValu>1</catValu><labl level='category'>One</labl><catStat type='freq'>3</catStat>\
            <catStat wgtd='wgtd' type='freq'>2.5</catStat></catgry>\
            <notes type='VDC:UNF'>UNF:6:x</notes><notes>Mine</notes></var></dataDscr>";
        let said = said(&parse(text).unwrap()).unwrap();
        assert_eq!(said["groups"][0]["variables"], json!(["v7", "v8"]));
        let it = &said["variables"]["7"];
        assert_eq!((&it["label"], &it["notes"]), (&json!("Sex & age"), &json!("Mine")));
        assert_eq!((&it["literalQuestion"], &it["weightVariableId"]), (&json!("Who?"), &json!(8)));
        let mut shown = json!({"label": "x", "variableCategories": [{"value": "1", "label": ""}]});
        put_into(&mut shown, it);
        assert_eq!(
            shown["variableCategories"][0],
            json!({"value": "1", "label": "One", "weightedFrequency": 2.5})
        );
        let bad = b"<dataDscr><var ID='v7'><catgry><catStat type='freq'/></catgry></var></dataDscr>";
        let message = super::said(&parse(bad).unwrap()).unwrap_err().message;
        assert!(message.contains("frequency"), "{message}");
        assert!(super::said(&parse(b"<var ID='7'/>").unwrap()).is_err());
        assert!(parse(b"<a><b></a>").is_err());
    }
}
