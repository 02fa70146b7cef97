//! The joined metadata blocks of a server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::definition::{Block, FieldType};
use super::tsv::{self, FieldRow, TsvError};

/// The blocks, their fields and vocabularies.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    blocks: Vec<Block>,
    fields: Vec<FieldType>,
    by_name: HashMap<String, usize>,
    /// A number that changes with each change of the registry.
    revision: u64,
}

/// Something that a load created or changed: name, and what it is.
pub type Loaded = (String, &'static str);

impl Registry {
    /// Returns the blocks of a new server.
    pub fn shipped() -> Self {
        let mut registry = Self::default();
        for (name, text) in super::SHIPPED {
            if let Err(error) = registry.load(text) {
                tracing::error!(block = name, %error, "a metadata block of the server itself cannot be read");
            }
        }
        registry
    }

    /// Loads a table; existing blocks and fields are replaced and keep their numbers.
    ///
    /// Errors: the table cannot be read, or names a block, field or parent that does not exist. Nothing is changed
    /// then.
    pub fn load(&mut self, text: &str) -> Result<Vec<Loaded>, TsvError> {
        let table = tsv::parse(text)?;
        let mut next = self.clone();
        let mut loaded = Vec::new();
        for row in table.blocks {
            let at = next.block_place(&row.name).unwrap_or(next.blocks.len());
            let id = at as u64 + 1;
            let fields = next.blocks.get(at).map(|it| it.fields.clone()).unwrap_or_default();
            let block = Block {
                id,
                name: row.name.clone(),
                display_name: row.display_name,
                owner: row.owner,
                uri: row.uri,
                fields,
            };
            match next.blocks.get_mut(at) {
                Some(place) => *place = block,
                None => next.blocks.push(block),
            }
            loaded.push((row.name, "MetadataBlock"));
        }
        for (index, row) in table.fields.into_iter().enumerate() {
            let fail = |what: String| TsvError { section: "DATASETFIELD", line: index + 1, what };
            loaded.push((row.name.clone(), "DatasetField"));
            next.add_field(row).map_err(fail)?;
        }
        let mut cleared: Vec<usize> = Vec::new();
        for (index, (field, term)) in table.terms.into_iter().enumerate() {
            let Some(&at) = next.by_name.get(&field) else {
                let what = format!("unknown dataset field {field:?}");
                return Err(TsvError { section: "CONTROLLEDVOCABULARY", line: index + 1, what });
            };
            if !cleared.contains(&at) {
                next.fields[at].vocabulary.clear();
                cleared.push(at);
            }
            loaded.push((term.value.clone(), "Controlled Vocabulary, Value"));
            next.fields[at].vocabulary.push(term);
        }
        for at in cleared {
            next.fields[at].vocabulary.sort_by_key(|it| it.order);
        }
        next.order_children();
        next.revise(text);
        *self = next;
        Ok(loaded)
    }

    fn add_field(&mut self, row: FieldRow) -> Result<(), String> {
        let block = self
            .block_place(&row.block)
            .ok_or_else(|| format!("field {:?} names the unknown block {:?}", row.name, row.block))?;
        let parent = match row.parent.as_str() {
            "" => None,
            name => Some(
                *self
                    .by_name
                    .get(name)
                    .ok_or_else(|| format!("field {:?} names the unknown parent {name:?}", row.name))?,
            ),
        };
        let at = self.by_name.get(&row.name).copied().unwrap_or(self.fields.len());
        if parent.is_some_and(|parent| parent == at || self.fields[parent].parent.is_some()) {
            return Err(format!("field {:?} cannot have the parent {:?}", row.name, row.parent));
        }
        let [is_searchable, is_controlled, is_multiple, is_facetable, is_on_create, is_required] = row.flags;
        let vocabulary = self.fields.get(at).map(|it| it.vocabulary.clone()).unwrap_or_default();
        let field = FieldType {
            id: at as u64 + 1,
            name: row.name.clone(),
            title: row.title,
            description: row.description,
            watermark: row.watermark,
            kind: row.kind,
            order: row.order,
            display_format: row.display_format,
            is_searchable,
            is_controlled,
            is_multiple,
            is_facetable,
            is_on_create,
            is_required,
            parent,
            children: Vec::new(),
            block,
            uri: row.uri,
            vocabulary,
        };
        match self.fields.get_mut(at) {
            Some(place) => *place = field,
            None => self.fields.push(field),
        }
        self.by_name.insert(row.name, at);
        Ok(())
    }

    /// Sets whether the form of a new dataset includes a field.
    pub fn set_on_create(&mut self, name: &str, is_on_create: bool) {
        if let Some(at) = self.place(name) {
            self.fields[at].is_on_create = is_on_create;
            self.revise(&(name, is_on_create));
        }
    }

    fn revise(&mut self, change: &(impl Hash + ?Sized)) {
        let mut hasher = DefaultHasher::new();
        self.revision.hash(&mut hasher);
        change.hash(&mut hasher);
        self.revision = hasher.finish();
    }

    /// Returns a number that is the same for registries with the same history of changes, and for no others.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn order_children(&mut self) {
        for block in &mut self.blocks {
            block.fields.clear();
        }
        for field in &mut self.fields {
            field.children.clear();
        }
        let mut places: Vec<usize> = (0..self.fields.len()).collect();
        places.sort_by_key(|at| (self.fields[*at].order, *at));
        for at in places {
            let (block, parent) = (self.fields[at].block, self.fields[at].parent);
            self.blocks[block].fields.push(at);
            if let Some(parent) = parent {
                self.fields[parent].children.push(at);
            }
        }
    }

    fn block_place(&self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|it| it.name == name)
    }

    /// Returns all blocks, in the order of loading.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the block with a name or a number.
    pub fn block(&self, name_or_id: &str) -> Option<&Block> {
        let by_id =
            || name_or_id.parse::<u64>().ok().and_then(|id| self.blocks.iter().find(|it| it.id == id));
        self.blocks.iter().find(|it| it.name == name_or_id).or_else(by_id)
    }

    /// Returns all fields, in the order of loading.
    pub fn fields(&self) -> &[FieldType] {
        &self.fields
    }

    /// Returns the index of a field.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the field with a name.
    pub fn field(&self, name: &str) -> Option<&FieldType> {
        self.place(name).map(|at| &self.fields[at])
    }

    /// Returns the field at an index of this registry.
    pub fn at(&self, place: usize) -> &FieldType {
        &self.fields[place]
    }

    /// Returns the block that a field belongs to.
    pub fn block_of(&self, field: &FieldType) -> &Block {
        &self.blocks[field.block]
    }

    /// Returns the field's display name, preceded by its parent's: `Author Name`.
    pub fn display_name(&self, field: &FieldType) -> String {
        match field.parent.map(|at| &self.fields[at]) {
            Some(parent) if parent.title != field.title => format!("{} {}", parent.title, field.title),
            _ => field.title.clone(),
        }
    }

    /// Returns whether a block has a field that is in the form of a new dataset.
    pub fn is_on_create(&self, block: &Block) -> bool {
        block.fields.iter().any(|at| self.fields[*at].is_on_create)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_blocks_are_joined() {
        let registry = Registry::shipped();
        let names: Vec<&str> = registry.blocks().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            ["citation", "geospatial", "socialscience", "astrophysics", "biomedical", "journal", "3dobjects"]
        );
        let author = registry.field("author").unwrap();
        let children: Vec<&str> = author.children.iter().map(|at| registry.at(*at).name.as_str()).collect();
        assert_eq!(
            children,
            ["authorName", "authorAffiliation", "authorIdentifierScheme", "authorIdentifier"]
        );
        let name = registry.field("authorName").unwrap();
        assert_eq!(registry.display_name(name), "Author Name");
        let language = registry.field("language").unwrap();
        assert_eq!(language.term("eng").map(|it| it.value.as_str()), Some("English"));
        assert!(registry.field("subject").unwrap().term("Spells").is_none());
        assert_eq!(registry.block("1").unwrap().name, "citation");
    }

    #[test]
    fn each_change_makes_a_revision() {
        let (mut a, mut b) = (Registry::shipped(), Registry::shipped());
        assert_eq!(a.revision(), b.revision());
        a.set_on_create("subtitle", true);
        assert_ne!(a.revision(), b.revision());
        b.set_on_create("subtitle", true);
        assert_eq!(a.revision(), b.revision());
        b.load("#metadataBlock\n\tx\t\tX\n").unwrap();
        assert_ne!(a.revision(), b.revision());
    }

    #[test]
    fn a_refused_table_changes_nothing() {
        let mut registry = Registry::shipped();
        let n_fields = registry.fields().len();
        let text = "#metadataBlock\n\tx\t\tX\n#datasetField\n\ta\tA\t\t\ttext\t1\t\t\t\t\t\t\t\tnobody\tx\n";
        assert!(registry.load(text).is_err());
        assert!(registry.block("x").is_none());
        assert_eq!(registry.fields().len(), n_fields);
    }
}
