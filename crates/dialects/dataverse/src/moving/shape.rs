//! Where records refer to others, by sort: one table for export and import.

use serde_json::Value;

/// The kind of reference at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A number of the tenant's sequence.
    Number,
    /// A user; `jane`.
    User,
    /// A collection; its short name.
    Collection,
    /// A role; its short name.
    Role,
    /// A licence; its name.
    License,
    /// An assignee: text in both, but `&explicit/12-readers` is exported as `&explicit/physics/readers`.
    Assignee,
    /// A blob; `LENGTH-SHA256`.
    Blob,
}

/// Members by path; `*` stands for each element of a list.
pub(super) type Shape = &'static [(&'static str, Leaf)];

use Leaf::{Assignee, Blob, Collection, License, Number, Role, User};

pub(super) const BLOCK: Shape = &[("order", Number)];
pub(super) const LICENSE: Shape = &[("id", Number)];
pub(super) const TYPE: Shape = &[("id", Number)];
pub(super) const USER: Shape = &[("id", Number)];
pub(super) const COLLECTION: Shape = &[
    ("id", Number),
    ("parent", Collection),
    ("creator", User),
    ("publisher", User),
    ("defaultContributorRole", Role),
    ("defaultTemplate", Number),
    ("inputLevels.*.id", Number),
    ("more.locallyFairRoleAssignees.*", Assignee),
];
pub(super) const ROLE: Shape = &[("id", Number), ("ownerId", Collection)];
pub(super) const GROUP: Shape = &[("id", Number), ("owner", Collection), ("members.*", Assignee)];
pub(super) const GUESTBOOK: Shape = &[("id", Number), ("collection", Collection)];
pub(super) const TEMPLATE: Shape = &[("id", Number), ("collection", Collection), ("terms.license", License)];
pub(super) const LOGO: Shape = &[("blob", Blob)];
pub(super) const LINK: Shape = &[("linked", Number), ("collection", Collection)];
pub(super) const ASSIGNMENT: Shape = &[("id", Number), ("role", Role), ("assignee", Assignee)];
pub(super) const DATASET: Shape = &[
    ("id", Number),
    ("owner", Collection),
    ("creator", User),
    ("publisher", User),
    ("guestbook", Number),
    ("draft.version", Number),
    ("released.version", Number),
    ("last.version", Number),
    ("more.thumbnailFile", Number),
];
pub(super) const VERSION: Shape =
    &[("id", Number), ("dataset", Number), ("license", License), ("contributorIds.*", User)];
pub(super) const DATA_FILE: Shape = &[
    ("id", Number),
    ("dataset", Number),
    ("creator", User),
    ("previous", Number),
    ("root", Number),
    ("blob", Blob),
    ("original.blob", Blob),
];
pub(super) const ROW: Shape = &[("id", Number), ("file", Number), ("dataset", Number)];
pub(super) const TABLE: Shape = &[("tables.*.id", Number), ("tables.*.dataVariables.*.id", Number)];
pub(super) const AUXILIARY: Shape = &[("id", Number), ("file", Number), ("blob", Blob)];
pub(super) const REQUEST: Shape = &[("id", Number), ("file", Number), ("user", User)];

/// Passes each value at a path of the shape to `visit`, except absent and null ones.
///
/// Errors: the first one of `visit`.
pub(super) fn each<E>(
    value: &mut Value,
    shape: Shape,
    visit: &mut dyn FnMut(Leaf, &mut Value) -> Result<(), E>,
) -> Result<(), E> {
    shape.iter().try_for_each(|(path, leaf)| at(value, path, &mut |found| visit(*leaf, found)))
}

fn at<E>(value: &mut Value, path: &str, visit: &mut dyn FnMut(&mut Value) -> Result<(), E>) -> Result<(), E> {
    if path.is_empty() {
        return if value.is_null() { Ok(()) } else { visit(value) };
    }
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    match (name, value) {
        ("*", Value::Array(list)) => list.iter_mut().try_for_each(|it| at(it, rest, visit)),
        (name, Value::Object(map)) => map.get_mut(name).map_or(Ok(()), |it| at(it, rest, visit)),
        _ => Ok(()),
    }
}

/// Maps the numbers of variables, by which their descriptions are stored (`files/variables.rs`), with `number`.
///
/// Errors: the first one of `number`.
pub(super) fn each_variable<E>(
    row: &mut Value,
    number: &mut dyn FnMut(i64) -> Result<i64, E>,
) -> Result<(), E> {
    let Some(said) = row.get_mut("variables").and_then(Value::as_object_mut) else { return Ok(()) };
    if let Some(variables) = said.get_mut("variables").and_then(Value::as_object_mut) {
        for (name, mut variable) in std::mem::take(variables) {
            let moved = match name.parse() {
                Ok(id) => number(id)?.to_string(),
                Err(_) => name,
            };
            if let Some(id) = variable["weightVariableId"].as_i64() {
                variable["weightVariableId"] = number(id)?.into();
            }
            variables.insert(moved, variable);
        }
    }
    for group in said.get_mut("groups").and_then(Value::as_array_mut).into_iter().flatten() {
        for member in group.get_mut("variables").and_then(Value::as_array_mut).into_iter().flatten() {
            let id = member.as_str().and_then(|it| it.strip_prefix('v')?.parse().ok());
            if let Some(id) = id {
                *member = format!("v{}", number(id)?).into();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_found_in_lists_and_below_members() {
        let mut value = json!({"id": 4, "a": [{"id": 1}, {"b": 2}, {"id": null}, {"id": 3}], "list": [5, 6], "x": {"y": 7}});
        let shape: Shape =
            &[("id", Number), ("a.*.id", Number), ("list.*", User), ("x.y", Number), ("none.z", Role)];
        let mut found = Vec::new();
        let walked: Result<(), ()> = each(&mut value, shape, &mut |leaf, it| {
            found.push((leaf, it.take()));
            Ok(())
        });
        assert_eq!(walked, Ok(()));
        let wanted = [(Number, 4), (Number, 1), (Number, 3), (User, 5), (User, 6), (Number, 7)];
        assert_eq!(found, wanted.map(|(leaf, n)| (leaf, json!(n))));
    }

    #[test]
    fn what_is_said_of_variables_moves_with_them() {
        let mut row = json!({"variables": {
            "variables": {"12": {"label": "High water", "weightVariableId": 13}, "13": {"label": null}},
            "groups": [{"id": "g1", "variables": ["v12", "v13"]}],
        }});
        let moved: Result<(), ()> = each_variable(&mut row, &mut |it| Ok(it + 100));
        assert_eq!(moved, Ok(()));
        let wanted = json!({"variables": {
            "variables": {"112": {"label": "High water", "weightVariableId": 113}, "113": {"label": null}},
            "groups": [{"id": "g1", "variables": ["v112", "v113"]}],
        }});
        assert_eq!(row, wanted);
    }
}
