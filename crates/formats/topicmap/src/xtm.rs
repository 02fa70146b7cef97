//! XTM: 1.0 (its own specification), 2.0 and 2.1 (ISO/IEC 13250-3). The root element determines the version.

mod ids;
mod names;
mod one;
mod two;
mod write;
mod write_one;

use crate::error::{Error, Place};
use crate::model::TopicId;
use crate::session::Session;
use crate::xml::{self, Children};
use crate::xtm::names::{NAMESPACE_1, NAMESPACE_2};

pub(crate) use write::{Version, write};
pub(crate) use write_one::write as write_one;

/// Reads a document of any version. `themes` are added to every scope (`mergeMap` of XTM 1.0).
pub(crate) fn read(
    bytes: &[u8],
    base: &str,
    themes: &[TopicId],
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let text = xml::decode(bytes, session.is_strict, &Place::new(base, 1))?;
    let mut children = Children::new(&text, base, session.limits.depth_max);
    let root =
        children.enter()?.ok_or_else(|| Place::new(base, 1).fault("holds no element; expected topicMap"))?;
    if &*root.namespace == NAMESPACE_2 {
        two::read(&root, &mut children, base, session)?;
    } else if &*root.namespace == NAMESPACE_1 || root.namespace.is_empty() || root.name != "topicMap" {
        one::read(root, &mut children, base, themes, session)?;
    } else {
        return Err(children.place().fault(format!(
            "the root {} is in the namespace {:?}; expected {NAMESPACE_2} or {NAMESPACE_1}",
            root.name, root.namespace
        )));
    }
    match children.enter()? {
        None => Ok(()),
        Some(it) => Err(children.place().fault(format!("the element {} follows the root", it.name))),
    }
}

/// Finishes the outermost document of XTM 1.0.
pub(crate) fn finish(session: &mut Session<'_>) {
    one::to_data_model(&mut session.builder);
}
