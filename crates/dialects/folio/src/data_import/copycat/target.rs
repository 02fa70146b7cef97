//! A client for a Z39.50 server (ISO 23950, version 3): initialise, search, present the first record.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::ber::{self, Content, Element};
use super::pqf::Query;
use crate::platform::limits::{COPYCAT_ANSWER_BYTES, COPYCAT_TIMEOUT_S};

/// Object identifier of MARC 21.
const MARC_21: [u32; 6] = [1, 2, 840, 10003, 5, 10];
/// Default port.
const PORT: u16 = 210;
/// Name of the result set.
const RESULT_SET: &[u8] = b"default";

/// Tags of requests and answers.
const INIT: (u32, u32) = (20, 21);
const SEARCH: (u32, u32) = (22, 23);
const PRESENT: (u32, u32) = (24, 25);
const CLOSE: u32 = 48;

/// Why no record was returned.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{0:?} is no address of a Z39.50 server: host:port/database is expected")]
    Address(String),
    #[error("{host} cannot be reached: {error}")]
    Unreachable { host: String, error: std::io::Error },
    #[error("{host} broke off: {reason}")]
    Broken { host: String, reason: String },
    #[error("{host} refused the session; check the name and the password of the profile")]
    Refused { host: String },
    #[error("{host} answered with a diagnostic: {told}")]
    Diagnostic { host: String, told: String },
    #[error("{host} has no such record")]
    Nothing { host: String },
}

/// A server as a profile names it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    host: String,
    port: u16,
    database: String,
    /// Name and password, in that order, separated by a blank.
    pub(super) login: Option<String>,
}

impl Target {
    /// Parses `host:port/database`, `host/database` or `z3950://…`.
    pub(super) fn read(url: &str) -> Result<Self, TargetError> {
        let bad = || TargetError::Address(url.to_owned());
        let rest = url.split_once("://").map_or(url, |it| it.1);
        let (address, database) = rest.split_once('/').ok_or_else(bad)?;
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| bad())?),
            None => (address, PORT),
        };
        if host.is_empty() || database.is_empty() {
            return Err(bad());
        }
        Ok(Self { host: host.to_owned(), port, database: database.to_owned(), login: None })
    }

    /// Fetches the first record that a query finds, as sent by the server, in the record syntax MARC 21.
    pub(super) fn first(&self, query: &Query) -> Result<Vec<u8>, TargetError> {
        let mut session = Session { stream: self.connect()?, host: &self.host, kept: Vec::new() };
        let version = ber::plain(3, &[0x05, 0xe0]);
        // Search and present.
        let options = ber::plain(4, &[0x06, 0xc0]);
        let sizes = [5, 6].map(|it| ber::plain(it, &ber::number(1 << 20)));
        let mut parts = vec![version, options];
        parts.extend(sizes);
        if let Some(login) = &self.login {
            let (name, password) = login.split_once(' ').unwrap_or((login, ""));
            let name = ber::plain(1, name.as_bytes());
            let login = ber::sequence(&[name, ber::plain(2, password.as_bytes())]);
            parts.push(ber::around(7, &[login]));
        }
        parts.push(ber::plain(111, b"Pinakes"));
        let answer = session.ask(INIT, &parts)?;
        if answer.at(12).is_none_or(|it| it.number() == 0) {
            return Err(TargetError::Refused { host: self.host.clone() });
        }
        let found = session.ask(
            SEARCH,
            &[
                ber::plain(13, &ber::number(0)),
                ber::plain(14, &ber::number(1)),
                ber::plain(15, &ber::number(0)),
                ber::plain(16, &[0xff]),
                ber::plain(17, RESULT_SET),
                ber::around(18, &[ber::plain(105, self.database.as_bytes())]),
                query.encoded(),
            ],
        )?;
        session.refuse_diagnostic(&found)?;
        if found.at(23).is_none_or(|it| it.number() < 1) {
            return Err(TargetError::Nothing { host: self.host.clone() });
        }
        let shown = session.ask(
            PRESENT,
            &[
                ber::plain(31, RESULT_SET),
                ber::plain(30, &ber::number(1)),
                ber::plain(29, &ber::number(1)),
                ber::around(19, &[ber::plain(0, b"F")]),
                ber::plain(104, &ber::object_id(&MARC_21)),
            ],
        )?;
        session.refuse_diagnostic(&shown)?;
        let record = record_of(&shown);
        session.close();
        record.ok_or_else(|| session.broken("it showed no record"))
    }

    fn connect(&self) -> Result<TcpStream, TargetError> {
        let timeout = Duration::from_secs(COPYCAT_TIMEOUT_S);
        let failed = |error| TargetError::Unreachable { host: self.host.clone(), error };
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(timeout)).map_err(failed)?;
                    stream.set_write_timeout(Some(timeout)).map_err(failed)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }
}

struct Session<'a> {
    stream: TcpStream,
    host: &'a str,
    /// Bytes that arrived after the last answer.
    kept: Vec<u8>,
}

impl Session<'_> {
    fn broken(&self, reason: impl Into<String>) -> TargetError {
        TargetError::Broken { host: self.host.to_owned(), reason: reason.into() }
    }

    /// Sends a request and returns the answer.
    fn ask(&mut self, (request, answer): (u32, u32), parts: &[Vec<u8>]) -> Result<Element, TargetError> {
        let bytes = ber::around(request, parts);
        self.stream.write_all(&bytes).map_err(|error| self.broken(error.to_string()))?;
        let mut piece = [0; 16 << 10];
        loop {
            match ber::read(&self.kept) {
                Ok((element, length)) => {
                    self.kept.drain(..length);
                    if element.tag == ber::context(answer) {
                        return Ok(element);
                    }
                    let what = if element.tag == ber::context(CLOSE) { "it closed the session" } else { "" };
                    let told = if what.is_empty() { "it answered something else" } else { what };
                    return Err(self.broken(told));
                }
                Err(ber::Fault::Bad) => return Err(self.broken("its answer is no Z39.50")),
                Err(ber::Fault::Short) if COPYCAT_ANSWER_BYTES < self.kept.len() => {
                    return Err(self.broken(format!("its answer has more than {COPYCAT_ANSWER_BYTES} bytes")));
                }
                Err(ber::Fault::Short) => {}
            }
            let n = self.stream.read(&mut piece).map_err(|error| self.broken(error.to_string()))?;
            if n == 0 {
                return Err(self.broken("it hung up"));
            }
            self.kept.extend_from_slice(&piece[..n]);
        }
    }

    /// Closes the session; the server may already have disconnected.
    fn close(&mut self) {
        let _ = self.stream.write_all(&ber::around(CLOSE, &[ber::plain(211, &ber::number(0))]));
    }

    /// Turns a diagnostic in an answer into an error.
    fn refuse_diagnostic(&self, answer: &Element) -> Result<(), TargetError> {
        // A diagnostic about the search, or about the first record.
        let shown = answer.at(28).filter(|it| find(it, 8).is_none());
        let about_record = shown.and_then(|it| find(it, ber::context(2)));
        let Some(diagnostic) = answer.at(130).or(about_record) else { return Ok(()) };
        let condition = find(diagnostic, 2).map_or(0, Element::number);
        let more = [26, 27].iter().find_map(|it| find(diagnostic, *it)).map(Element::text);
        let told = match more.filter(|it| !it.is_empty()) {
            Some(more) => format!("{condition} ({more})"),
            None => condition.to_string(),
        };
        Err(TargetError::Diagnostic { host: self.host.to_owned(), told })
    }
}

/// Returns the first element with a tag, at any depth.
fn find(element: &Element, tag: u32) -> Option<&Element> {
    element.elements().iter().find_map(|it| if it.tag == tag { Some(it) } else { find(it, tag) })
}

/// Returns the first record of an answer: `EXTERNAL` with its octets either directly or inside an element.
fn record_of(answer: &Element) -> Option<Vec<u8>> {
    let external = find(answer.at(28)?, 8)?;
    let bytes = match (external.at(1), external.at(0)) {
        (Some(octets), _) => octets.bytes(),
        (None, Some(single)) => match &single.content {
            Content::Elements(list) => list.first()?.bytes(),
            Content::Bytes(bytes) => bytes.clone(),
        },
        (None, None) => return None,
    };
    Some(bytes).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a server that sends the recorded answers of yaz-ztest, whatever the request.
    fn server(answers: Vec<&'static [u8]>) -> std::io::Result<u16> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            for answer in answers {
                let mut asked = Vec::new();
                let mut piece = [0; 1 << 10];
                while matches!(ber::read(&asked), Err(ber::Fault::Short)) {
                    let n = stream.read(&mut piece)?;
                    asked.extend_from_slice(&piece[..n]);
                }
                // In two pieces, as over a slow connection.
                let (first, second) = answer.split_at(answer.len() / 2);
                stream.write_all(first)?;
                stream.flush()?;
                stream.write_all(second)?;
            }
            Ok(())
        });
        Ok(port)
    }

    const INIT_ANSWER: &[u8] = include_bytes!("../../../tests/data/copycat/init.bin");
    const SEARCH_ANSWER: &[u8] = include_bytes!("../../../tests/data/copycat/search.bin");
    const PRESENT_ANSWER: &[u8] = include_bytes!("../../../tests/data/copycat/present.bin");

    #[test]
    fn a_record_is_fetched() -> std::io::Result<()> {
        let query = Query::Term(vec![(1, 4)], "computer".to_owned());
        let port = server(vec![INIT_ANSWER, SEARCH_ANSWER, PRESENT_ANSWER])?;
        let target = Target::read(&format!("127.0.0.1:{port}/Default")).unwrap_or_else(|it| panic!("{it}"));
        let record = target.first(&query).unwrap_or_else(|error| panic!("{error}"));
        assert!(record.starts_with(b"00366nam  2200169"), "{}", String::from_utf8_lossy(&record));
        assert_eq!(record.len(), 366);

        let port = server(vec![INIT_ANSWER, b"hello"])?;
        let target = Target::read(&format!("127.0.0.1:{port}/Default")).unwrap_or_else(|it| panic!("{it}"));
        assert!(target.first(&query).is_err());
        // No server listens on the port of a listener that was closed.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let target = Target::read(&format!("127.0.0.1:{port}/Default")).unwrap_or_else(|it| panic!("{it}"));
        assert!(matches!(target.first(&query), Err(TargetError::Unreachable { .. })));
        Ok(())
    }

    #[test]
    fn addresses_are_read() {
        for (url, host, port, database) in [
            ("lx2.loc.gov:210/LCDB", "lx2.loc.gov", 210, "LCDB"),
            ("z3950://zcat.example.org/Books", "zcat.example.org", 210, "Books"),
            ("localhost:9999/Default", "localhost", 9999, "Default"),
        ] {
            let target = Target::read(url).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((target.host.as_str(), target.port, target.database.as_str()), (host, port, database));
        }
        for url in ["", "localhost", "localhost:x/Default", "/Default", "localhost:210/"] {
            assert!(Target::read(url).is_err(), "{url}");
        }
    }
}
