//! The dialect behind the shell, over a real socket: recorded answers, a plain model, imports and swaps.

mod golden;
mod imports;
mod model;
mod server;
mod swap;
