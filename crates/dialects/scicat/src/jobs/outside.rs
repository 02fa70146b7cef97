//! Which actions call other servers.

use crate::jobs::actions::Action;
use crate::settings::Settings;

impl Action {
    /// Says whether running this action calls another server; switches are not considered.
    pub(crate) fn reaches_outside(&self, settings: &Settings) -> bool {
        match self {
            Self::Url(_) | Self::Email(_) => true,
            Self::RabbitMq(_) => settings.rabbitmq_enabled,
            Self::Validate(_) | Self::Switch(_) | Self::Error(_) | Self::Log(_) => false,
        }
    }
}

/// Says whether any action calls another server, including those in switches.
pub(crate) fn reach_outside(actions: &[Action], settings: &Settings) -> bool {
    actions.iter().any(|action| match action {
        Action::Switch(switch) => switch.cases.iter().any(|it| reach_outside(&it.actions, settings)),
        other => other.reaches_outside(settings),
    })
}

/// Returns how many actions may call another server, over all cases of switches.
pub(crate) fn n_outside(actions: &[Action]) -> usize {
    let n = |action: &Action| match action {
        Action::Switch(switch) => switch.cases.iter().map(|it| n_outside(&it.actions)).sum(),
        Action::Url(_) | Action::Email(_) | Action::RabbitMq(_) => 1,
        _ => 0,
    };
    actions.iter().map(n).sum()
}
