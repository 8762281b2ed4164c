//! What the process logs meanwhile.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps what is logged.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        logged().push(record.args().to_string());
    }

    fn flush(&self) {}
}

pub fn logged() -> MutexGuard<'static, Vec<String>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One test at a time: the log is the process's.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static LOG: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LOG.call_once(|| {
        log::set_logger(&Log).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    logged().clear();
    turn
}
