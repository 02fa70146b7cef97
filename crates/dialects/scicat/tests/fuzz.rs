//! The fuzz targets of this crate on mutated inputs with a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/dataset.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod dataset;
#[path = "../fuzz/fuzz_targets/filters.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod filters;
#[path = "../fuzz/fuzz_targets/job_file.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod job_file;
#[path = "../fuzz/fuzz_targets/json_error.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod json_error;
#[path = "../fuzz/fuzz_targets/list_splitter.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod list_splitter;
#[path = "../fuzz/fuzz_targets/text_forms.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod text_forms;

const DATASET: &str = r#"{"pid":"p/1","type":"raw","ownerGroup":"g","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1",
    "creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","keywords":["a"],"size":7,
    "scientificMetadata":{"t":{"value":1.5,"unit":"mm"},"n":{"v":[1,"x",null]}}}"#;

#[test]
fn dataset_survives() {
    dataset::survives([DATASET]);
}

#[test]
fn filters_survives() {
    let window = r#""limits":{"limit":1,"order":"size:desc"},"fields":["pid"]"#;
    let first =
        format!(r#"{{"where":{{"or":[{{"pid":{{"inq":["a","p/1"]}}}},{{"size":{{"gt":5}}}}]}},{window}}}"#);
    filters::survives([
        (first.as_str(), DATASET),
        (
            r#"{"where":{"$and":[{"owner":{"$regex":"^o","$options":"i"}},{"keywords":{"$in":["a"]}}]},"include":["all"]}"#,
            DATASET,
        ),
        (
            r#"{"text":"a -b \"c d\"","scientific":[{"lhs":"t","relation":"GREATER_THAN","rhs":1,"unit":"m"}],"isPublished":true}"#,
            DATASET,
        ),
    ]);
}

#[test]
fn job_file_survives() {
    job_file::survives([
        "configVersion: v9\njobs: [{jobType: do, create: {auth: '#all', actions: [{actionType: log, init: '{{job.id}}'}]}}]\n",
        "jobs:\n- jobType: archive\n  create:\n    auth: '#datasetOwner'\n    actions:\n    - actionType: validate\n      request: {a: {}}\n",
    ]);
}

#[test]
fn json_error_survives() {
    json_error::survives([DATASET, r#"[1.5e3,"\u00e9\ud83d\ude00",true,null,{"":[]}]"#]);
}

#[test]
fn list_splitter_survives() {
    let file = r#"{"path":"a\"]","size":1,"time":"2020-01-15T08:00:00Z"}"#;
    let body =
        format!(r#"{{"datasetId":"p","x":{{"dataFileList":[1]}},"dataFileList":[{file},{file}],"size":2}}"#);
    list_splitter::survives([body.as_str(), r#"{"dataFileList":[]}"#, r#" { "dataFileList" : null }"#]);
}

#[test]
fn text_forms_survives() {
    text_forms::survives([
        "2020-01-15T08:00:00.123+02:00",
        "Wed, 15 Jan 2020 08:00:00 GMT",
        "first.last+tag@sub.example.org",
        "https://user@example.org:8080/a/b?c=d#e",
    ]);
}
