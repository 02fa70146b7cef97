//! The number of an index writer's first operation.

use tantivy::schema::Field;
use tantivy::{Document, IndexWriter, Term};

use super::terms;

/// A writer gives its first operation the number of the last commit it found. A deletion with that number is lost if a
/// merge begins before the next commit and that last commit has changed one of the segments. So the first operation
/// deletes nothing.
pub(super) fn use_up_first_number(writer: &IndexWriter<impl Document>, terms: Field) {
    writer.delete_term(Term::from_field_bytes(terms, &terms::nobodys_term()));
}

#[cfg(test)]
mod tests {
    use tantivy::collector::Count;
    use tantivy::indexer::{LogMergePolicy, NoMergePolicy};
    use tantivy::query::TermQuery;
    use tantivy::schema::{INDEXED, IndexRecordOption, Schema};
    use tantivy::{Index, IndexWriter, TantivyDocument, Term};

    use super::use_up_first_number;

    /// Regression test: records deleted as the first change after a server start were still in an index.
    #[test]
    fn the_first_deletion_of_a_writer_outlives_a_merge() -> tantivy::Result<()> {
        let mut schema = Schema::builder();
        let terms = schema.add_bytes_field("terms", INDEXED);
        let index = Index::create_in_ram(schema.build());
        let add = |writer: &IndexWriter, from: u64, to: u64| {
            (from..to).try_for_each(|n| {
                let mut document = TantivyDocument::default();
                document.add_bytes(terms, &n.to_be_bytes());
                writer.add_document(document).map(drop)
            })
        };
        let term = |n: u64| Term::from_field_bytes(terms, &n.to_be_bytes());
        // Two segments, the smaller of which was changed by the last commit.
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 << 20)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for (from, to) in [(0, 50), (50, 60)] {
            add(&writer, from, to)?;
            writer.commit()?;
        }
        writer.delete_term(term(50));
        writer.commit()?;
        writer.wait_merging_threads()?;

        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 << 20)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(2);
        writer.set_merge_policy(Box::new(policy));
        use_up_first_number(&writer, terms);
        writer.delete_term(term(51));
        add(&writer, 60, 61)?;
        writer.commit()?;
        writer.wait_merging_threads()?;

        let searcher = index.reader()?.searcher();
        assert_eq!(searcher.num_docs(), 59);
        for (n, n_found) in [(50, 0), (51, 0), (52, 1), (60, 1)] {
            let query = TermQuery::new(term(n), IndexRecordOption::Basic);
            assert_eq!(searcher.search(&query, &Count)?, n_found, "{n}");
        }
        Ok(())
    }
}
