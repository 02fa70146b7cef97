//! Any bytes through every reader, and the result through every writer.
//!
//!     cargo +nightly fuzz run read ../../../../../shared/data/marc/broken
//!
//! The first byte chooses the format and the encoding, so that one corpus serves all.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_marc::{
    Encoding, Format, OutputEncoding, Reader, RecordView, Writer, json, parse, records, sniff, validate,
};

fuzz_target!(|input: &[u8]| {
    let _ = sniff(input);
    let [choice, data @ ..] = input else { return };
    let format = Format::ALL[usize::from(choice % 4)];
    let encoding = [Encoding::Leader, Encoding::Utf8, Encoding::Marc8][usize::from(choice / 4 % 3)];
    let mut end = 0;
    for raw in records(format, data) {
        assert!(end <= raw.offset);
        end = raw.offset + raw.bytes.len() as u64;
        if format == Format::Iso2709 {
            let mut out = Vec::new();
            json::write_view(&RecordView::new(raw.clone()), encoding, &mut out);
            assert!(std::str::from_utf8(&out).is_ok());
        }
        let parsed = parse(format, encoding, raw);
        let _ = validate(&parsed);
        let Some(record) = &parsed.record else { continue };
        for to in Format::ALL {
            for encoding in [OutputEncoding::Utf8, OutputEncoding::Marc8] {
                let mut writer = Writer::new(Vec::new(), to, encoding);
                if writer.write(record).is_ok() {
                    let out = writer.finish().unwrap();
                    assert_eq!(records(to, &out).count(), 1);
                }
            }
        }
    }
    let mut reader = Reader::new(data, format).with_record_len_max(256);
    while reader.next_record().unwrap().is_some() {}
});
