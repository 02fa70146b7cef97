//! A way to the database that can be cut at a chosen word.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What becomes of the message that holds the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It never reaches the database.
    Before,
    /// The database gets it and does it; its answer never comes back.
    After,
}

/// Stands between the store and a database: passes on what comes, until it is told to cut.
#[derive(Clone)]
pub(crate) struct Wire {
    address: SocketAddr,
    plan: Arc<Plan>,
}

struct Plan {
    database: String,
    cut: Mutex<Option<(&'static [u8], Cut)>>,
    n_cut: AtomicUsize,
    is_silent: AtomicBool,
}

impl Wire {
    /// `database` is `host:port`.
    pub(crate) fn to(database: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan = Arc::new(Plan {
            database: database.to_owned(),
            cut: Mutex::default(),
            n_cut: AtomicUsize::new(0),
            is_silent: AtomicBool::new(false),
        });
        let of_thread = plan.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let plan = of_thread.clone();
                std::thread::spawn(move || pass(client, &plan));
            }
        });
        Self { address, plan }
    }

    /// `host:port` of this end.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Cuts the connection that next sends a message with this word in it.
    pub(crate) fn cut_at(&self, word: &'static str, cut: Cut) {
        *self.plan.cut.lock().unwrap_or_else(PoisonError::into_inner) = Some((word.as_bytes(), cut));
    }

    /// How many connections were cut.
    pub(crate) fn n_cut(&self) -> usize {
        self.plan.n_cut.load(Ordering::SeqCst)
    }

    /// From now on, or no longer, the database hears nothing: connections stay open.
    pub(crate) fn be_silent(&self, is_silent: bool) {
        self.plan.is_silent.store(is_silent, Ordering::SeqCst);
    }
}

fn pass(client: TcpStream, plan: &Arc<Plan>) {
    let Ok(database) = TcpStream::connect(&plan.database) else { return };
    let (mut from, mut to) = (client.try_clone().expect("a clone"), database.try_clone().expect("a clone"));
    // Once the word was seen, what the database says is no longer passed on.
    let is_cut = Arc::new(AtomicBool::new(false));
    let seen = is_cut.clone();
    std::thread::spawn(move || {
        let (mut database, mut client) = (database, client);
        let (mut bytes, mut recent) = (vec![0; 64 << 10], Vec::new());
        while let Ok(n) = database.read(&mut bytes) {
            if n == 0 || (!seen.load(Ordering::SeqCst) && client.write_all(&bytes[..n]).is_err()) {
                break;
            }
            follow(&mut recent, &bytes[..n]);
            if seen.load(Ordering::SeqCst) && recent.ends_with(READY) {
                // It has done what was asked and said so, to nobody.
                break;
            }
        }
        drop(client.shutdown(std::net::Shutdown::Both));
        drop(database.shutdown(std::net::Shutdown::Both));
    });
    let (mut bytes, mut recent) = (vec![0; 64 << 10], Vec::new());
    while let Ok(n) = from.read(&mut bytes) {
        if n == 0 {
            break;
        }
        while plan.is_silent.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        follow(&mut recent, &bytes[..n]);
        match plan.take(&recent, n) {
            Some(Cut::Before) => break,
            Some(Cut::After) => {
                is_cut.store(true, Ordering::SeqCst);
                if to.write_all(&bytes[..n]).is_err() {
                    break;
                }
                // The other direction ends both when the database has answered.
                return;
            }
            None => {
                if to.write_all(&bytes[..n]).is_err() {
                    break;
                }
            }
        }
    }
    drop(from.shutdown(std::net::Shutdown::Both));
    drop(to.shutdown(std::net::Shutdown::Both));
}

/// Keeps the end of what came before in front of what comes now: a word may come in two parts.
fn follow(recent: &mut Vec<u8>, bytes: &[u8]) {
    let n_kept = recent.len().min(LONGEST_WORD);
    recent.drain(..recent.len() - n_kept);
    recent.extend_from_slice(bytes);
}

/// Longest word that is looked for, in bytes.
const LONGEST_WORD: usize = 64;
/// The end of an answer after which no transaction is under way.
const READY: &[u8] = b"Z\0\0\0\x05I";

impl Plan {
    /// What to do when the word ends in the last `n_new` of these bytes.
    fn take(&self, bytes: &[u8], n_new: usize) -> Option<Cut> {
        let mut place = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let (word, cut) = (*place)?;
        let first = (bytes.len() - n_new + 1).saturating_sub(word.len());
        bytes[first..].windows(word.len()).any(|it| it == word).then(|| {
            *place = None;
            self.n_cut.fetch_add(1, Ordering::SeqCst);
            cut
        })
    }
}
