//! The shell over real sockets: recorded exchanges, and what takes more than one exchange.

mod common;
mod exchanges;
mod patience;
mod serving;
