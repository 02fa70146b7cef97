//! A proxy to the database whose connections can be cut at a chosen word.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What happens to the message that contains the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It never reaches the database.
    Before,
    /// The database receives and executes it; its answer never arrives.
    After,
}

/// A proxy between the store and a database: forwards everything until it is told to cut.
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
    /// Returns a wire to `database`, given as `host:port`.
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

    /// Returns `host:port` of this end.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Cuts the connection that next sends a message containing this word.
    pub(crate) fn cut_at(&self, word: &'static str, cut: Cut) {
        *self.plan.cut.lock().unwrap_or_else(PoisonError::into_inner) = Some((word.as_bytes(), cut));
    }

    /// Returns how many connections were cut.
    pub(crate) fn n_cut(&self) -> usize {
        self.plan.n_cut.load(Ordering::SeqCst)
    }

    /// Sets whether the database receives nothing from now on, with connections kept open.
    pub(crate) fn be_silent(&self, is_silent: bool) {
        self.plan.is_silent.store(is_silent, Ordering::SeqCst);
    }
}

fn pass(client: TcpStream, plan: &Arc<Plan>) {
    let Ok(database) = TcpStream::connect(&plan.database) else { return };
    let (mut from, mut to) = (client.try_clone().expect("a clone"), database.try_clone().expect("a clone"));
    // Once the word was seen, the database's answers are no longer forwarded.
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
                // The database has executed the statement and answered; nobody receives the answer.
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
                // The other direction closes both when the database has answered.
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

/// Keeps the end of the previous data in front of the new data: a word may arrive in two parts.
fn follow(recent: &mut Vec<u8>, bytes: &[u8]) {
    let n_kept = recent.len().min(LONGEST_WORD);
    recent.drain(..recent.len() - n_kept);
    recent.extend_from_slice(bytes);
}

/// Maximum length of the word in bytes.
const LONGEST_WORD: usize = 64;
/// The end of an answer after which no transaction is open.
const READY: &[u8] = b"Z\0\0\0\x05I";

impl Plan {
    /// Returns what to do when the word ends in the last `n_new` of these bytes.
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
