//! Runs the fuzz targets of this crate on inputs mutated with a fixed seed; `just fuzz` runs them for longer.

#[path = "../../fuzz/fuzz_targets/deposit_blocks.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod deposit_blocks;
#[path = "../../fuzz/fuzz_targets/deposit_ddi.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod deposit_ddi;
#[path = "../../fuzz/fuzz_targets/deposit_entry.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod deposit_entry;
#[path = "../../fuzz/fuzz_targets/deposit_metadata.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod deposit_metadata;
#[path = "../../fuzz/fuzz_targets/deposit_search.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod deposit_search;

#[test]
fn deposit_blocks_survives() {
    deposit_blocks::survives([concat!(
        "#metadataBlock\tname\tdataverseAlias\tdisplayName\tblockURI\n\tmine\t\tMine\thttp://x/\n",
        "#datasetField\tname\ttitle\tdescription\twatermark\tfieldType\tdisplayOrder\tdisplayFormat\tadvancedSearchField\t",
        "allowControlledVocabulary\tallowmultiples\tfacetable\tdisplayoncreate\trequired\tparent\tmetadatablock_id\ttermURI\n",
        "\tcolour\tColour\td\t\ttext\t1\t\tTRUE\tTRUE\tTRUE\tTRUE\tTRUE\tFALSE\t\tmine\t\n",
        "#controlledVocabulary\tDatasetField\tValue\tidentifier\tdisplayOrder\n\tcolour\tred\tr\t0\n",
    )]);
}

#[test]
fn deposit_ddi_survives() {
    deposit_ddi::survives([
        r#"<codeBook xmlns="ddi:codebook:2_5"><stdyDscr><citation><titlStmt><titl>T</titl><IDNo agency="DOI">doi:10.1/A</IDNo></titlStmt>
        <rspStmt><AuthEnty affiliation="X">A, B</AuthEnty></rspStmt><distStmt><contact email="a@b.org">C</contact></distStmt></citation>
        <stdyInfo><subject><keyword vocab="v">k</keyword></subject><abstract>A &amp; b</abstract><sumDscr><timePrd event="start">2020</timePrd>
        <geoBndBox><westBL>1</westBL></geoBndBox></sumDscr></stdyInfo></stdyDscr></codeBook>"#,
    ]);
}

#[test]
fn deposit_entry_survives() {
    deposit_entry::survives([
        r#"<entry xmlns="http://www.w3.org/2005/Atom" xmlns:dcterms="http://purl.org/dc/terms/"><title>T</title>
        <dcterms:title>T</dcterms:title><dcterms:creator affiliation="X">A, B</dcterms:creator><dcterms:description>D</dcterms:description>
        <dcterms:subject>Law</dcterms:subject><dcterms:isReferencedBy holdingsURI="http://x/">C</dcterms:isReferencedBy></entry>"#,
    ]);
}

#[test]
fn deposit_metadata_survives() {
    deposit_metadata::survives([
        r#"{"citation":{"displayName":"c","fields":[{"typeName":"title","typeClass":"primitive","multiple":false,"value":"T"},
        {"typeName":"author","typeClass":"compound","multiple":true,"value":[{"authorName":{"typeName":"authorName","value":"A"}}]},
        {"typeName":"subject","typeClass":"controlledVocabulary","multiple":true,"value":["Law"]}]}}"#,
        r#"{"@context":{"title":"http://purl.org/dc/terms/title"},"title":"T","http://purl.org/dc/terms/creator":{"@list":[
        {"https://dataverse.org/schema/citation/authorName":"A"}]},"@type":["ore:Aggregation"]}"#,
    ]);
}

#[test]
fn deposit_search_survives() {
    deposit_search::survives([
        "title:(a AND \"b c\"~2) OR -d* +e?f^2 date:[2020 TO *}",
        "NOT (author\\:x || y~1) && *:*",
    ]);
}
