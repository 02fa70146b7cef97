//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

#[path = "../../fuzz/fuzz_targets/json.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod json;
#[path = "../../fuzz/fuzz_targets/request_lines.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod request_lines;
#[path = "../../fuzz/fuzz_targets/requests.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod requests;

#[test]
fn json_survives() {
    json::survives([r#"{"a":[1,{"b":[null,true,"\u00e9"]}],"c":1.5e3}"#, "[[[[[[[[1]]]]]]]]", " 7 "]);
}

#[test]
fn request_lines_survives() {
    request_lines::survives([
        "GET /a b?c={\"d\"} HTTP/1.1\r\nHost: x\r\n\r\nPOST /e HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\nGET /| HTTP/1.1\r\n\r\n",
    ]);
}

#[test]
fn requests_survives() {
    requests::survives([
        ("/API//Datasets/%7bx%7D/?access_token=a&b=c", "Bearer abc", "token=abc; other=\"d\""),
        ("http://x/metadatakeys/", "W/\"1-1\", *", "token"),
    ]);
}
