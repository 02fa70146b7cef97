//! The pinakes command: serve, demo, import, export, backup, check.
fn main() {}
