//! The log, as lines shown to operators.

use std::fmt::{Debug, Write as _};

use pinakes_accounts::Clock;
use pinakes_site::{Line, RecentLog};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Records log lines, except those of single requests: they are too many, and name who asked for what.
pub(crate) struct RecentLines(pub(crate) RecentLog);

/// The message, and its fields.
#[derive(Default)]
struct Text {
    message: String,
    values: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.values, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.values, " {name}={value}"),
        };
    }
}

impl<S: Subscriber> Layer<S> for RecentLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        let level = match level {
            Level::ERROR => "ERROR",
            Level::WARN => "WARN",
            Level::INFO => "INFO",
            _ => return,
        };
        if target == "access" {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let text = format!("{}{}", text.message, text.values);
        self.0.add(Line { at_ms: Clock::System.now_ms(), level, target: target.to_owned(), text });
    }
}
