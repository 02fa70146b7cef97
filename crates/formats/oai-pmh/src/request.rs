//! Requests: their arguments, checked.

use crate::datestamp::{Granularity, Range};
use crate::fault::Fault;
use crate::token::{Token, TokenForm};
use crate::verb::{RESUMPTION_TOKEN, Verb};

/// A request whose arguments are those of its verb, and well formed.
#[derive(Debug)]
pub(crate) enum Request {
    Identify,
    Formats {
        identifier: Option<String>,
    },
    Sets {
        resumed: Option<Token>,
    },
    List {
        is_whole: bool,
        /// The arguments of the list, in the form of its beginning if it is not resumed.
        window: Token,
        range: Range,
        is_resumed: bool,
    },
    Record {
        identifier: String,
        prefix: String,
    },
}

/// Names and values of a request.
pub(crate) type Given<'a> = [(&'a str, &'a str)];

/// Returns the first value of a name.
pub(crate) fn value<'a>(given: &Given<'a>, name: &str) -> Option<&'a str> {
    given.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// Reads the verb.
fn verb(given: &Given<'_>) -> Result<Verb, Fault> {
    let verbs: Vec<&str> = given.iter().filter(|it| it.0 == "verb").map(|it| it.1).collect();
    match verbs[..] {
        [] => Err(Fault::NoVerb),
        [name] => Verb::ALL
            .into_iter()
            .find(|it| it.name() == name)
            .ok_or_else(|| Fault::UnknownVerb(name.to_owned())),
        _ => Err(Fault::RepeatedVerb(verbs.into_iter().map(str::to_owned).collect())),
    }
}

/// Refuses arguments that a verb does not take, and missing ones.
fn check(verb: Verb, given: &Given<'_>) -> Result<(), Fault> {
    let arguments = verb.arguments();
    let mut seen: Vec<&'static str> = Vec::new();
    for (name, _) in given.iter().filter(|it| it.0 != "verb") {
        let Some(known) = arguments.names().find(|it| it == name) else {
            return Err(Fault::UnknownArgument(verb, (*name).to_owned()));
        };
        if seen.contains(&known) {
            return Err(Fault::RepeatedArgument(verb, (*name).to_owned()));
        }
        seen.push(known);
    }
    if let Some(exclusive) = arguments.exclusive.filter(|it| seen.contains(it)) {
        return if seen.len() == 1 { Ok(()) } else { Err(Fault::NotAlone(verb, exclusive)) };
    }
    let is_missing = |name: &&str| value(given, name).is_none_or(str::is_empty);
    match arguments.required.iter().find(|it| is_missing(it)) {
        Some(name) => Err(Fault::MissingArgument(verb, name)),
        None => Ok(()),
    }
}

impl Request {
    /// Reads the arguments of a request.
    pub(crate) fn parse(
        given: &Given<'_>,
        granularity: Granularity,
        form: TokenForm,
    ) -> Result<(Verb, Self), Fault> {
        let verb = verb(given)?;
        check(verb, given)?;
        let text = |name: &str| value(given, name).map(str::to_owned);
        let resumed = match value(given, RESUMPTION_TOKEN) {
            Some(token) => Some(Token::parse(token, form).ok_or(Fault::UnknownToken)?),
            None => None,
        };
        let request = match verb {
            Verb::Identify => Self::Identify,
            Verb::ListMetadataFormats => Self::Formats { identifier: text("identifier") },
            Verb::ListSets => Self::Sets { resumed },
            Verb::GetRecord => Self::Record {
                identifier: text("identifier").unwrap_or_default(),
                prefix: text("metadataPrefix").unwrap_or_default(),
            },
            Verb::ListIdentifiers | Verb::ListRecords => {
                let is_resumed = resumed.is_some();
                let window = resumed.unwrap_or_else(|| Token {
                    prefix: text("metadataPrefix").unwrap_or_default(),
                    set: text("set"),
                    from: text("from"),
                    until: text("until"),
                    ..Token::default()
                });
                let range = Range::parse(window.from.as_deref(), window.until.as_deref(), granularity);
                let range = range.map_err(|it| if is_resumed { Fault::UnknownToken } else { it })?;
                Self::List { is_whole: verb == Verb::ListRecords, window, range, is_resumed }
            }
        };
        Ok((verb, request))
    }
}
