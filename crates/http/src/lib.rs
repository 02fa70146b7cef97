//! What the dialects share of HTTP: caller, tenant, limits, errors, timing, metrics.
