//! Datasets as a beamline's ingestor sends them to SciCat: about 2 KB with 20 metadata fields, each
//! further field some 45 bytes. Most fields are quantities with a unit, as in the scientific metadata of
//! real facilities; some are texts, numbers and lists.

use serde_json::{Map, Value, json};

use super::random::Random;
use super::words::{WORDS, person, sentence};

/// Metadata fields of a dataset of about 2 KB.
pub const BASE_FIELDS: usize = 20;

/// Datasets share this many proposals.
pub const N_PROPOSALS: u64 = 500;

/// Creation times are distributed over the ten years from this second on (2014-01-01T00:00:00Z).
const FIRST_CREATION_S: i64 = 1_388_534_400;
const CREATION_SPAN_S: u64 = 10 * 365 * 86_400;

/// Units that SciCat converts to SI, with the range of their values.
const QUANTITIES: [(&str, f64); 12] = [
    ("mm", 500.0),
    ("K", 400.0),
    ("celsius", 90.0),
    ("keV", 30.0),
    ("mbar", 1000.0),
    ("Hz", 50_000.0),
    ("deg", 360.0),
    ("s", 3600.0),
    ("mA", 400.0),
    ("V", 10_000.0),
    ("angstrom", 12.0),
    ("GB", 64.0),
];

/// Properties shared by the datasets of a run.
#[derive(Clone, Debug)]
pub struct DatasetShape {
    /// Group that owns them: one of the account's.
    pub owner_group: String,
    /// A keyword by which all datasets of a run can be found and deleted.
    pub tag: String,
    /// Scientific metadata fields of each.
    pub n_fields: usize,
}

/// Returns the `n`-th dataset of `seed`, as the body of a create request.
pub fn dataset(shape: &DatasetShape, seed: u64, n: u64) -> Value {
    let mut random = Random::new(seed, n);
    let creation = creation_time(&mut random);
    let year = &creation[..4];
    let beamline = ["DREAM", "LOKI", "ODIN", "NMX", "ESTIA", "BIFROST"][random.below(6) as usize];
    let name = sentence(&mut random, 5);
    json!({
        "type": "raw",
        "datasetName": name,
        "description": sentence(&mut random, 40),
        "ownerGroup": shape.owner_group,
        "accessGroups": ["reviewers"],
        "owner": person(&mut random),
        "ownerEmail": "owner@example.org",
        "contactEmail": "contact@example.org",
        "principalInvestigator": person(&mut random),
        "creationLocation": format!("/ESS/{beamline}"),
        "creationTime": creation,
        "sourceFolder": format!("/data/{year}/{beamline}/run{n:08}"),
        "size": random.below(1 << 40),
        "numberOfFiles": 0,
        "proposalId": proposal_id(random.below(N_PROPOSALS)),
        "sampleId": format!("sample-{}", random.below(5000)),
        "keywords": [shape.tag, random.pick(&WORDS), random.pick(&WORDS)],
        "dataFormat": "NeXus HDF5",
        "isPublished": false,
        "scientificMetadata": scientific_metadata(&mut random, shape.n_fields),
    })
}

/// Returns the id of the `n`-th proposal.
pub fn proposal_id(n: u64) -> String {
    format!("{}", 2_020_000 + n)
}

/// Generates `n_fields` fields; the names are the same in all datasets, as for one instrument.
fn scientific_metadata(random: &mut Random, n_fields: usize) -> Map<String, Value> {
    (0..n_fields).map(|index| (field_name(index), field_value(random, index))).collect()
}

/// Returns the name of the `index`-th metadata field.
pub fn field_name(index: usize) -> String {
    format!("{}_{index:04}", ["motor", "sensor", "sample", "beam", "optics"][index % 5])
}

fn field_value(random: &mut Random, index: usize) -> Value {
    match index % 10 {
        7 => json!(sentence(random, 3)),
        8 => json!(random.below(100_000)),
        9 => json!((0..3).map(|_| rounded(random.unit() * 100.0)).collect::<Vec<_>>()),
        _ => {
            let (unit, range) = QUANTITIES[index % QUANTITIES.len()];
            json!({"value": rounded(random.unit() * range), "unit": unit})
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn creation_time(random: &mut Random) -> String {
    let offset_s = i64::try_from(random.below(CREATION_SPAN_S)).unwrap_or(0);
    timestamp(FIRST_CREATION_S + offset_s)
}

/// Returns the condition for the datasets created in one month of the ten years: begin and end.
pub fn random_month(random: &mut Random) -> (String, String) {
    period(random, 1)
}

/// Returns the same for so many successive months, of 30 days each.
pub fn period(random: &mut Random, n_months: u64) -> (String, String) {
    const MONTH_S: u64 = 30 * 86_400;
    let span_s = n_months * MONTH_S;
    let begin_s =
        FIRST_CREATION_S + i64::try_from(random.below(CREATION_SPAN_S.saturating_sub(span_s))).unwrap_or(0);
    (timestamp(begin_s), timestamp(begin_s + span_s.cast_signed()))
}

/// Formats a Unix time in seconds as `2020-01-15T08:00:00.000Z`.
pub fn timestamp(unix_s: i64) -> String {
    let moment =
        time::OffsetDateTime::from_unix_timestamp(unix_s).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.000Z",
        moment.year(),
        u8::from(moment.month()),
        moment.day(),
        moment.hour(),
        moment.minute(),
        moment.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(n_fields: usize) -> DatasetShape {
        DatasetShape { owner_group: "group1".to_owned(), tag: "bench-1".to_owned(), n_fields }
    }

    #[test]
    fn a_base_dataset_is_about_two_kilobytes() {
        for n in 0..100 {
            let bytes = dataset(&shape(BASE_FIELDS), 1, n).to_string().len();
            assert!((1_600..2_400).contains(&bytes), "dataset {n} has {bytes} bytes");
        }
    }

    #[test]
    fn fields_are_counted_and_seeded() {
        for n_fields in [0, 100, 3000] {
            let body = dataset(&shape(n_fields), 1, 9);
            assert_eq!(body["scientificMetadata"].as_object().unwrap().len(), n_fields);
            assert_eq!(body, dataset(&shape(n_fields), 1, 9));
            assert_ne!(body, dataset(&shape(n_fields), 2, 9));
        }
        assert_eq!(dataset(&shape(1), 1, 0)["scientificMetadata"]["motor_0000"]["unit"], "mm");
    }

    #[test]
    fn timestamps() {
        assert_eq!(timestamp(FIRST_CREATION_S), "2014-01-01T00:00:00.000Z");
        let (begin, end) = random_month(&mut Random::new(1, 1));
        assert!(begin < end);
    }
}
