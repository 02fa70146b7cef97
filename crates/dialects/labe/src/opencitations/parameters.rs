//! Parameters that select and format an answer's rows. They are applied in this order, regardless of their order in
//! the URL: `require`, `filter`, `sort`, page, `json`, `format`.

use http::{HeaderMap, header::ACCEPT};
use regex::{Regex, RegexBuilder};

use super::reshape::{RULES_MAX, Rule};
use super::typed::{Column, Row, Typed};

/// Largest compiled size of a pattern, in bytes.
const PATTERN_SIZE_BYTES: usize = 1 << 20;
/// Maximum number of conditions and sorts in one request.
const CONDITIONS_MAX: usize = 32;

/// Reason why parameters are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParameterError {
    /// A column in `require` that the answer does not have; an invalid pattern.
    #[error("something unexpected happened - {0}")]
    Unexpected(String),
    /// An invalid page.
    #[error("{0}")]
    Malformed(String),
}

/// All parameters that apply to the rows.
#[derive(Debug)]
pub(crate) struct Parameters {
    columns: &'static [Column],
    require: Vec<usize>,
    filters: Vec<Filter>,
    /// In the order in which they are applied.
    sorts: Vec<Sort>,
    pub(crate) page: Option<Page>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) format: Format,
}

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A list of objects.
    Json,
    /// A table with a header.
    Csv,
}

/// A page of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// Page number, from 1.
    pub(crate) number: usize,
    /// Number of rows.
    pub(crate) size: usize,
}

/// Limits for pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageBounds {
    /// Number of rows if no size is given.
    pub(crate) size_default: usize,
    /// Maximum number of rows.
    pub(crate) size_max: usize,
}

#[derive(Debug)]
struct Filter {
    column: usize,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Less(Typed),
    More(Typed),
    Equal(Typed),
    Found(Regex),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    column: usize,
    direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Rising,
    Falling,
}

impl Format {
    /// Returns the requested format: the last `format`, else `text/csv` in `Accept`, else JSON.
    pub(crate) fn of(pairs: &[(String, String)], headers: &HeaderMap) -> Self {
        let named = all(pairs, &["format"]).filter_map(|value| match value {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        });
        named.last().unwrap_or_else(|| {
            let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
            if accept.contains("text/csv") { Self::Csv } else { Self::Json }
        })
    }
}

impl Parameters {
    /// Parses the parameters of a request.
    ///
    /// # Errors
    /// An unknown column in `require`, an invalid pattern, an invalid page.
    pub(crate) fn parse(
        pairs: &[(String, String)],
        headers: &HeaderMap,
        columns: &'static [Column],
        bounds: PageBounds,
    ) -> Result<Self, ParameterError> {
        let require = all(pairs, &["require", "exclude"]).take(CONDITIONS_MAX).map(|name| {
            place_of(columns, name).ok_or_else(|| ParameterError::Unexpected(format!("no field {name:?}")))
        });
        let filters = all(pairs, &["filter"]).take(CONDITIONS_MAX);
        let filters = filters.filter_map(|text| Filter::parse(text, columns).transpose());
        Ok(Self {
            columns,
            require: require.collect::<Result<_, _>>()?,
            filters: filters.collect::<Result<_, _>>()?,
            sorts: sorts(pairs, columns),
            page: page(pairs, bounds)?,
            rules: all(pairs, &["json"]).filter_map(Rule::parse).take(RULES_MAX).collect(),
            format: Format::of(pairs, headers),
        })
    }

    /// Returns the columns of the rows.
    pub(crate) fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Says whether rows can be sent in the order in which they are read.
    pub(crate) fn keeps_order(&self) -> bool {
        self.sorts.is_empty() && self.page.is_none()
    }

    /// Says whether a row is included.
    pub(crate) fn keeps(&self, row: &Row) -> bool {
        self.require.iter().all(|column| row.get(*column).is_some_and(|it| !it.is_empty()))
            && self.filters.iter().all(|filter| filter.keeps(self.columns, row))
    }

    /// Sorts the rows.
    pub(crate) fn sort(&self, rows: &mut [Row]) {
        for sort in &self.sorts {
            let ty = self.columns[sort.column].ty;
            rows.sort_by(|a, b| {
                let order = Typed::order(ty, &a[sort.column], &b[sort.column]);
                if sort.direction == Direction::Falling { order.reverse() } else { order }
            });
        }
    }
}

impl Filter {
    /// Parses a filter; `None` for one that is ignored: an unknown field, or a value that is not of the field's
    /// type.
    fn parse(text: &str, columns: &[Column]) -> Result<Option<Self>, ParameterError> {
        let Some((name, condition)) = text.split_once(':') else { return Ok(None) };
        let Some(column) = place_of(columns, name) else { return Ok(None) };
        let Some(operator) = condition.chars().next().filter(|it| matches!(it, '<' | '>' | '=')) else {
            let mut builder = RegexBuilder::new(&condition.to_lowercase());
            let built = builder.size_limit(PATTERN_SIZE_BYTES).dfa_size_limit(PATTERN_SIZE_BYTES).build();
            let pattern = built.map_err(|error| ParameterError::Unexpected(error.to_string()))?;
            return Ok(Some(Self { column, test: Test::Found(pattern) }));
        };
        let Some(value) = Typed::asked(columns[column].ty, &condition[1..]) else { return Ok(None) };
        let test = match operator {
            '<' => Test::Less(value),
            '>' => Test::More(value),
            _ => Test::Equal(value),
        };
        Ok(Some(Self { column, test }))
    }

    fn keeps(&self, columns: &[Column], row: &Row) -> bool {
        let Some(value) = row.get(self.column) else { return false };
        let typed = || Typed::of(columns[self.column].ty, value);
        match &self.test {
            Test::Less(bound) => typed().is_some_and(|it| it < *bound),
            Test::More(bound) => typed().is_some_and(|it| *bound < it),
            Test::Equal(bound) => typed().is_some_and(|it| it == *bound),
            Test::Found(pattern) => pattern.is_match(&value.to_lowercase()),
        }
    }
}

/// Returns the decoded pairs of a query, in order. A `+` is a plus sign, as it occurs in patterns.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

fn all<'a>(pairs: &'a [(String, String)], names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    pairs.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
}

fn place_of(columns: &[Column], name: &str) -> Option<usize> {
    columns.iter().position(|it| it.name == name)
}

/// Returns the sorts in descending order of their texts: the alphabetically first one is applied last and so is the
/// main key.
fn sorts(pairs: &[(String, String)], columns: &[Column]) -> Vec<Sort> {
    let mut texts: Vec<&str> = all(pairs, &["sort"]).take(CONDITIONS_MAX).collect();
    texts.sort_unstable();
    let parse = |text: &str| {
        let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        let (name, direction) = match (inner("desc"), inner("asc")) {
            (Some(name), _) => (name, Direction::Falling),
            (None, asc) => (asc.unwrap_or(text), Direction::Rising),
        };
        Some(Sort { column: place_of(columns, name)?, direction })
    };
    texts.into_iter().rev().filter_map(parse).collect()
}

fn page(pairs: &[(String, String)], bounds: PageBounds) -> Result<Option<Page>, ParameterError> {
    let number = |name: &str, max: usize| -> Result<Option<usize>, ParameterError> {
        let Some((_, text)) = pairs.iter().rfind(|(it, _)| it == name) else { return Ok(None) };
        let value = text.parse().ok().filter(|it| (1..=max).contains(it));
        value.map(Some).ok_or_else(|| {
            ParameterError::Malformed(format!("{name} is {text:?}; expected a number from 1 to {max}"))
        })
    };
    let page = number("page", u32::MAX as usize)?;
    let size = number("page_size", bounds.size_max)?;
    if page.is_none() && size.is_none() {
        return Ok(None);
    }
    Ok(Some(Page { number: page.unwrap_or(1), size: size.unwrap_or(bounds.size_default) }))
}

#[cfg(test)]
mod tests {
    use super::super::index::CITATION;
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: PageBounds = PageBounds { size_default: 100, size_max: 1000 };

    fn parsed(query: &str) -> Result<Parameters, ParameterError> {
        Parameters::parse(&pairs(query), &HeaderMap::new(), &CITATION, BOUNDS)
    }

    /// Returns the rows that a query keeps; only their creation dates and cited works matter.
    fn kept(query: &str) -> String {
        let mut rows: Vec<Row> =
            [("2016-03", "10.1/B"), ("", "10.1/a"), ("2016", "10.2/c"), ("2020-05-02", "")]
                .map(|(creation, cited)| ["", "", cited, creation, "", "", ""].map(str::to_owned).to_vec())
                .into();
        let Ok(parameters) = parsed(query) else { return "refused".to_owned() };
        rows.retain(|row| parameters.keeps(row));
        parameters.sort(&mut rows);
        rows.iter().map(|row| format!("{}|{}", row[3], row[2])).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_are_kept_and_sorted() {
        for (query, expected) in [
            ("require=creation", "2016-03|10.1/B 2016|10.2/c 2020-05-02|"),
            ("exclude=cited&require=creation", "2016-03|10.1/B 2016|10.2/c"),
            ("require=nothing", "refused"),
            ("filter=creation:>2016", "2016-03|10.1/B 2020-05-02|"),
            ("filter=creation:=2016", "2016|10.2/c"),
            ("filter=creation:%3C2016", "|10.1/a"),
            ("filter=creation:<soon&require=cited", "2016-03|10.1/B |10.1/a 2016|10.2/c"),
            ("filter=cited:^10.1/[AB]", "2016-03|10.1/B |10.1/a"),
            ("filter=cited:(", "refused"),
            ("filter=cited:^10.1+/a", "|10.1/a"),
            ("filter=cited:^10.+/", "2016-03|10.1/B |10.1/a 2016|10.2/c"),
            ("filter=timespan:>P1Y&filter=cited:=10.1/A", "|10.1/a"),
            ("filter=unknown:1&filter=creation:2016", "2016-03|10.1/B 2016|10.2/c"),
            ("sort=creation", "|10.1/a 2016|10.2/c 2016-03|10.1/B 2020-05-02|"),
            ("sort=desc(cited)", "2016|10.2/c 2016-03|10.1/B |10.1/a 2020-05-02|"),
            ("sort=desc(creation)&sort=asc(cited)", "2020-05-02| |10.1/a 2016-03|10.1/B 2016|10.2/c"),
            ("sort=unknown&require=cited", "2016-03|10.1/B |10.1/a 2016|10.2/c"),
        ] {
            assert_eq!(kept(query), expected, "{query}");
        }
    }

    #[test]
    fn pages_and_formats() {
        let page = |query: &str| parsed(query).map(|it| it.page).map_err(|error| error.to_string());
        assert_eq!(page(""), Ok(None));
        assert_eq!(page("page=2"), Ok(Some(Page { number: 2, size: 100 })));
        assert_eq!(page("page_size=7"), Ok(Some(Page { number: 1, size: 7 })));
        for query in ["page=0", "page=x", "page_size=1001", "page=-1"] {
            assert!(page(query).is_err(), "{query}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, http::HeaderValue::from_static("text/html, text/csv;q=0.5"));
        assert_eq!(Format::of(&pairs(""), &headers), Format::Csv);
        assert_eq!(Format::of(&pairs("format=csv&format=json"), &headers), Format::Json);
        assert_eq!(Format::of(&pairs("format=xml"), &HeaderMap::new()), Format::Json);
    }

    proptest! {
        #[test]
        fn no_query_panics(query in "((require|filter|sort|json|page|format)=[a-z:<>=()\".,%0-9]{0,12}&?){0,4}") {
            if let Ok(parameters) = parsed(&query) {
                let row: Row = vec!["1".to_owned(); 7];
                let _ = parameters.keeps(&row);
                parameters.sort(&mut [row.clone(), row]);
            }
        }
    }
}
