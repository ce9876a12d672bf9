//! The kinds of faults in one process.
//!
//! Owns: which there are on which engine, and what a report calls them. Does not own: what each does (`story`).

use store::Engine;

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ServerKilled,
    ServerKilledInCall,
    AnswerLost,
    WriteRepeated,
    WriteRepeatedLate,
    ReportRepeated,
    ReportsReordered,
    AgentKilled,
    AgentSilent,
    MachineRestarted,
    NodeGivenUp,
    NodeSilent,
    ClockForward,
    ClockBack,
    LogAway,
    LogMute,
    ReadModelsBusy,
    MonthEnd,
    /// Every connection to the database is cut.
    DatabaseCut,
    /// A second server serves for a while, and is killed.
    ServerBeside,
}

/// What may happen on any engine.
const ON_ANY: &[Kind] = &[
    Kind::ServerKilled,
    Kind::ServerKilledInCall,
    Kind::AnswerLost,
    Kind::WriteRepeated,
    Kind::WriteRepeatedLate,
    Kind::ReportRepeated,
    Kind::ReportsReordered,
    Kind::AgentKilled,
    Kind::AgentSilent,
    Kind::MachineRestarted,
    Kind::NodeGivenUp,
    Kind::NodeSilent,
    Kind::ClockForward,
    Kind::ClockBack,
    Kind::LogAway,
    Kind::LogMute,
    Kind::ReadModelsBusy,
    Kind::MonthEnd,
];

impl Kind {
    /// What may happen on this engine.
    pub fn on(engine: Engine) -> Vec<Self> {
        let more: &[Self] = match engine {
            Engine::Sqlite => &[],
            Engine::Postgres => &[Self::DatabaseCut, Self::ServerBeside],
        };
        [ON_ANY, more].concat()
    }

    /// What a report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerKilled => "server_killed",
            Self::ServerKilledInCall => "server_killed_in_call",
            Self::AnswerLost => "answer_lost",
            Self::WriteRepeated => "write_repeated",
            Self::WriteRepeatedLate => "write_repeated_late",
            Self::ReportRepeated => "report_repeated",
            Self::ReportsReordered => "reports_reordered",
            Self::AgentKilled => "agent_killed",
            Self::AgentSilent => "agent_silent",
            Self::MachineRestarted => "machine_restarted",
            Self::NodeGivenUp => "node_given_up",
            Self::NodeSilent => "node_silent",
            Self::ClockForward => "clock_forward",
            Self::ClockBack => "clock_back",
            Self::LogAway => "log_away",
            Self::LogMute => "log_mute",
            Self::ReadModelsBusy => "read_models_busy",
            Self::MonthEnd => "month_end",
            Self::DatabaseCut => "database_cut",
            Self::ServerBeside => "server_beside",
        }
    }
}
