//! Paths, queries, credentials and tags of arbitrary requests; rewriting a path twice changes nothing
//! further.
#![no_main]

use http::Request;
use libfuzzer_sys::fuzz_target;
use pinakes_http::etag::Tag;
use pinakes_http::{DoubleSlashes, Entrance, FinalSlash, PathRules, TenantChoice, TokenPlace, entrance};

const OPEN: Entrance = Entrance {
    tokens: &[TokenPlace::Bearer, TokenPlace::Cookie("token"), TokenPlace::Query("access_token")],
    tenant_headers: &[entrance::TENANT_HEADER],
};

fuzz_target!(|input: (&str, &str, &str)| {
    let (uri, header, cookie) = input;
    let rules = PathRules::default()
        .words(["api", "datasets", "metadataKeys"])
        .final_slash(FinalSlash::Drop)
        .double_slashes(DoubleSlashes::Collapse);
    let request = Request::builder()
        .uri(uri)
        .header("authorization", header)
        .header("if-none-match", header)
        .header("host", header)
        .header("cookie", cookie);
    let Ok(request) = request.body(()) else { return };
    let (parts, ()) = request.into_parts();
    let _ = entrance::token_of(&parts, &OPEN);
    let _ = TenantChoice::default().choose(&parts.headers, OPEN.tenant_headers);
    let _ = Tag::of_record(1, 1).is_known_to(&parts.headers);
    if let Some(once) = rules.rewrite(&parts.uri) {
        assert_eq!(rules.rewrite(&once), None);
    }
});
