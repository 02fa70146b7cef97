//! Tests of the dialect over HTTP, in one process: the life of a deposit.

mod accounts;
mod administration;
mod answers;
mod deposits;
mod details;
mod every_route;
mod file_lists;
mod files;
mod groups;
mod harvesting;
mod headers;
mod hostile;
mod leaks;
mod moving;
mod mydata;
mod oai;
mod outside;
mod rules;
mod saved_searches;
mod search;
mod server;
mod sword;
mod upkeep;
mod usage;
mod users;
mod workflows;
