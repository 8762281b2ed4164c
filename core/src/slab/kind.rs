//! The kinds, as types.

use core::fmt::Debug;

use slabfence_sys::RangeKind;

use crate::driver::Access;

mod sealed {
    pub trait Sealed {}
}

/// A kind of slab memory. There are four.
pub trait Kind: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// Its name in messages.
    const NAME: &'static str;
    /// What peers' devices may do in it; `None`: nothing, it is never shared.
    const PEERS: Option<Access>;
    /// Its code in records and towards the emulated driver's checker.
    const CODE: RangeKind;
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident: $text:literal, $peers:expr, $code:ident;)*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Kind for $name {
            const NAME: &'static str = $text;
            const PEERS: Option<Access> = $peers;
            const CODE: RangeKind = RangeKind::$code;
        }
    )* };
}

kinds! {
    /// A channel's state on its own device: epoch, ticket, counters. Peers never see it.
    Local: "local", None, LOCAL;
    /// Entry lines, data flags and poison lines: every line has one writer.
    Signal: "signal", Some(Access::ReadWrite), SIGNAL;
    /// What peers pull. They can only read it: a store through a peer's mapping faults.
    Outbox: "outbox", Some(Access::Read), OUTBOX;
    /// What peers push, each source in its own part.
    Inbox: "inbox", Some(Access::ReadWrite), INBOX;
}
