//! Any bytes as a citation table, as Meta CSV, as a table of local ids, and as each single field.

#![no_main]

use std::io::{Cursor, Error};

use libfuzzer_sys::fuzz_target;
use pinakes_citations::doi::{Dirt, normalise_into};
use pinakes_citations::id_table::read_id_table;
use pinakes_citations::meta::read_work_ids;
use pinakes_citations::rows::{Layout, RowParser};
use pinakes_citations::{Omid, PartialDate, Timespan, oci};

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    if let Some(layout) = Layout::detect(lines.clone().next().unwrap_or_default()) {
        let mut parser = RowParser::new(layout);
        lines.all(|line| parser.parse(line, &mut |_| {}).is_ok());
    }
    read_work_ids(&mut Cursor::new(bytes), &mut |_, _| Ok::<_, Error>(())).unwrap();
    read_id_table(&mut Cursor::new(bytes), &mut |_, _| Ok::<_, Error>(())).unwrap();
    for dirt in [Dirt::Keep, Dirt::Cut] {
        normalise_into(bytes, dirt, &mut Vec::new()).ok();
    }
    oci::decode(&String::from_utf8_lossy(bytes)).ok();
    std::hint::black_box((Omid::parse(bytes), PartialDate::parse(bytes), Timespan::parse(bytes)));
});
