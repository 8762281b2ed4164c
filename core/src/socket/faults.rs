//! Failing any one call on a socket of a thread, for unit tests: the kernel fails none of them when it is asked to.

use std::cell::RefCell;
use std::io;

use rustix::io::Errno;

/// One call that fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strike {
    pub call: &'static str,
    /// After its effect.
    pub after: bool,
    /// Which of the thread's calls, from zero.
    pub nth: u32,
    pub code: Errno,
}

thread_local! {
    static ARMED: RefCell<Option<Strike>> = const { RefCell::new(None) };
}

/// Has a call of this thread fail, or none; whether the one before was come to.
pub(crate) fn arm(strike: Option<Strike>) -> bool {
    ARMED.replace(strike).is_none()
}

/// Fails where the thread has come to its call.
pub(super) fn strike(call: &'static str, after: bool) -> io::Result<()> {
    ARMED.with_borrow_mut(|armed| {
        let here = |armed: &&mut Strike| (armed.call, armed.after) == (call, after);
        let Some(found) = armed.as_mut().filter(here) else {
            return Ok(());
        };
        match found.nth.checked_sub(1) {
            Some(left) => {
                found.nth = left;
                Ok(())
            }
            None => {
                let code = found.code;
                *armed = None;
                Err(code.into())
            }
        }
    })
}
