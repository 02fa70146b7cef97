//! `folio-import`: files of MARC authorities through FOLIO's data import, as in the published report: 1,000 to
//! 50,000 records in one tenant, with concurrent desks, and in several tenants at once.

pub(crate) mod arguments;
mod pass;
mod site;
mod tables;

use std::time::Duration;

use self::pass::{Imported, Imports, Profile};
use self::site::Site;
use self::tables::{ImportTable, by_size, desk_table};
use super::folio_desk::times::{self, Times};
use super::folio_desk::{Habit, Library, desk_step, desks};
use crate::error::BenchError;
use crate::load::{Group, Loops, Step};
use crate::published;
use crate::result::{StepKind, Table};
use crate::runner::{COUNTED_WORK_MAX, Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

pub use self::arguments::FolioImportArgs;

/// Limit for one exchange, unless given: one of them uploads the file.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the scenario and writes its report.
pub async fn run(args: &FolioImportArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "FOLIO: import of MARC authorities";
    let mut runner = args.common.begin("folio-import", title, stop).await?;
    if args.common.timeout_s.is_none() {
        runner.settings.timeout = UPLOAD_TIMEOUT;
    }
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &FolioImportArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let mut site = Site::begin(runner, args).await?;
    let settings = &mut runner.result.settings;
    settings.insert("job profile".to_owned(), args.profile.clone());
    settings.insert("pause at desks".to_owned(), format!("{} ms after each item", args.think_ms));
    settings.insert("jobs asked for every".to_owned(), format!("{:?}", args.poll()));
    let mut library = Library::new();
    let outcome = measure(args, runner, &mut site, &mut library).await;
    let is_over = matches!(
        &outcome,
        Err(BenchError::ServerGone { .. } | BenchError::CannotConnect { .. } | BenchError::Interrupted)
    );
    if is_over || args.keep_data {
        let (files, barcodes) = (&site.tag, &library.tag);
        runner.note(format!(
            "the data was left in the server: names of files and profiles begin with {files}, barcodes with {barcodes}"
        ));
        return outcome;
    }
    let cleaned = clean(args, runner, &site, &library).await;
    outcome.and(cleaned)
}

async fn clean(
    args: &FolioImportArgs,
    runner: &mut Runner,
    site: &Site,
    library: &Library,
) -> Result<(), BenchError> {
    let n_left =
        library.clean(&site.tenants[0].session).await? + site.clean(runner, args.clean_connections).await?;
    if 0 < n_left {
        runner.note(format!(
            "{n_left} records could not be removed; names of files begin with {}, barcodes with {}",
            site.tag, library.tag
        ));
    }
    Ok(())
}

async fn measure(
    args: &FolioImportArgs,
    runner: &mut Runner,
    site: &mut Site,
    library: &mut Library,
) -> Result<(), BenchError> {
    let mut table = ImportTable::new();
    let (mut summary, mut desk) = (None, None);
    let mut outcome = imports(args, runner, site, &mut table).await.map(|it| summary = Some(it));
    if outcome.is_ok() && 0 < args.desks {
        outcome = beside(args, runner, site, library, &mut table).await.map(|it| desk = Some(it));
    }
    let series = by_size(&runner.result);
    let result = &mut runner.result;
    result.tables.push(table.finish(summary));
    result.tables.extend(desk);
    result.series.push(series);
    outcome
}

/// Runs imports of one tenant by size, one that matches, then several tenants at once. Returns a sentence with
/// the rates.
async fn imports(
    args: &FolioImportArgs,
    runner: &mut Runner,
    site: &mut Site,
    table: &mut ImportTable,
) -> Result<String, BenchError> {
    let mut summaries = Vec::new();
    for n_records in args.records() {
        let name = format!("{} records", thousands(n_records));
        let per_s =
            several(args, runner, site, table, &Import { name, n_records, n_tenants: 1, profile: None })
                .await?;
        summaries = vec![format!("{} records at {}", thousands(n_records), rate(per_s))];
    }
    if let (false, Some(n_records)) = (args.no_match, args.records().into_iter().max()) {
        let profile = Some(site.matching_profile().await?);
        let name = format!("{} records, matched on 010 $a", thousands(n_records));
        let per_s =
            several(args, runner, site, table, &Import { name, n_records, n_tenants: 1, profile }).await?;
        summaries.push(format!("matched on 010 $a at {}", rate(per_s)));
    }
    let n_records = args.by_scale(args.tenant_records, 2_000, 25_000);
    if site.tenants.len() == 1 {
        runner.note("several tenants at once were not measured: name them with --more-tenants".to_owned());
        return Ok(summaries.join(", "));
    }
    for n_tenants in 1..=site.tenants.len() {
        let s = if n_tenants == 1 { "" } else { "s" };
        let name = format!("{n_tenants} tenant{s}, {} records each", thousands(n_records));
        let per_s =
            several(args, runner, site, table, &Import { name, n_records, n_tenants, profile: None }).await?;
        summaries.push(format!("{n_tenants} tenant{s} together {}", rate(per_s)));
    }
    Ok(summaries.join(", "))
}

/// A step of imports.
struct Import {
    name: String,
    /// Number of records for each tenant.
    n_records: u64,
    n_tenants: usize,
    /// Used instead of the run's profile.
    profile: Option<Profile>,
}

/// Measures a step as often as the timing says, each time with new records. Returns the median rate of
/// records.
async fn several(
    args: &FolioImportArgs,
    runner: &mut Runner,
    site: &mut Site,
    table: &mut ImportTable,
    import: &Import,
) -> Result<f64, BenchError> {
    let mut rates = Vec::new();
    for repeat in 0..runner.timing.repeats {
        let uploads = (0..import.n_tenants)
            .map(|at| site.upload(at, import.n_records, import.profile.as_ref()))
            .collect();
        let done = Imports::default();
        let step = import_step(import, pass::group("", uploads, Loops::PerUser(1), args.poll(), &done));
        let published = published::folio_import(import.n_records).filter(|_| import.n_tenants == 1);
        let measured = runner.measure_once(&step, StepKind::Closed, |result| {
            result.repeat = repeat;
            result.work = pass::work_of(&done.over());
            result.published = published;
        });
        let measured = measured.await;
        site.remember(&done);
        measured?;
        let over = done.over();
        let n_missing = check(runner, site, &import.name, import.n_tenants, &over, import.n_records).await?;
        table.add(&import.name, &over, n_missing);
        rates.push(pass::work_of(&over).map_or(0.0, |it| it.per_s()));
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates.get(rates.len() / 2).copied().unwrap_or(0.0))
}

fn import_step(import: &Import, group: Group) -> Step {
    let labels = [
        ("records", import.n_records.to_string()),
        ("tenants", import.n_tenants.to_string()),
        ("profile", if import.profile.is_some() { "match" } else { "create" }.to_owned()),
    ];
    Step {
        name: import.name.clone(),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        warmup: Duration::ZERO,
        // It ends when all imports are over.
        measured: COUNTED_WORK_MAX,
        groups: vec![group],
    }
}

/// Counts and reports records that were not created: a fast import that loses records is not fast.
async fn check(
    runner: &mut Runner,
    site: &Site,
    step: &str,
    n_wanted: usize,
    imports: &[Imported],
    n_records: u64,
) -> Result<u64, BenchError> {
    let mut n_missing = n_records * (n_wanted.saturating_sub(imports.len())) as u64;
    for import in imports {
        let n_created = site.n_created(import.tenant, &import.job).await?;
        n_missing += import.n_records.saturating_sub(n_created);
        if import.status != "COMMITTED" {
            runner.note(format!(
                "{step}: job {} of {} ended as {}",
                import.job, import.definition, import.status
            ));
        }
    }
    if 0 < n_missing {
        runner.note(format!("{step}: {} records were not created", thousands(n_missing)));
    }
    Ok(n_missing)
}

/// Measures desks alone, then during an import that is restarted whenever it is over.
async fn beside(
    args: &FolioImportArgs,
    runner: &mut Runner,
    site: &mut Site,
    library: &mut Library,
    table: &mut ImportTable,
) -> Result<Table, BenchError> {
    let session = site.tenants[0].session.clone();
    library.prepare(&session, args.desks, args.items.max(1)).await?;
    let times = Times::default();
    let habit = Habit { is_bare: false, think: Duration::from_millis(args.think_ms) };
    let at_work = || desks(&session, library, args.desks, habit, &times);
    let step = desk_step(runner, args.desks, "no import", vec![at_work()]);
    let idle = times::measure(runner, &step, &times).await?;

    let n_records = args.by_scale(args.beside_records, 5_000, 50_000);
    let done = Imports::default();
    let upload = site.upload(0, n_records, None);
    let import = pass::group("import", vec![upload], Loops::UntilEnd, args.poll(), &done);
    let step = desk_step(runner, args.desks, "beside an import", vec![at_work(), import]);
    let measured = times::measure(runner, &step, &times).await;
    site.remember(&done);
    let both = measured?;
    let name = format!("{} records beside {} desks", thousands(n_records), args.desks);
    let over = done.over();
    let n_missing = check(runner, site, &name, done.begun().len(), &over, n_records).await?;
    table.add(&name, &over, n_missing);
    Ok(desk_table(args.desks, &idle, &both))
}
