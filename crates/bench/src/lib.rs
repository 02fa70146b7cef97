//! Load generator, scenarios and reports; knows a server only by its URL.
