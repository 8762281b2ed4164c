//! The messages of one location.

use std::collections::BTreeSet;

use crate::head::Head;
use crate::strength::Party;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    /// What it wrote.
    pub(crate) value: i64,
    /// Who wrote; `None` for the initial value, which is morally strong with everything.
    pub(crate) by: Option<Party>,
    /// The messages that who reads it observes: itself, and those that an update read on the way to it.
    pub(crate) chain: BTreeSet<u32>,
    /// Release patterns that it completes.
    pub(crate) heads: BTreeSet<Head>,
}

/// Writes in coherence order, which is the order in which they were made. Numbers of messages stay when old ones are
/// forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    first: u32,
    messages: Vec<Message>,
}

impl History {
    pub(crate) fn new(value: i64) -> Self {
        let initial = Message {
            value,
            by: None,
            chain: BTreeSet::new(),
            heads: BTreeSet::new(),
        };
        Self {
            first: 0,
            messages: vec![initial],
        }
    }

    /// The number of the newest message.
    pub(crate) fn newest(&self) -> u32 {
        self.first + (self.messages.len() - 1) as u32
    }

    pub(crate) fn get(&self, number: u32) -> &Message {
        &self.messages[(number - self.first) as usize]
    }

    /// Messages that are newer than `number`.
    pub(crate) fn after(&self, number: u32) -> &[Message] {
        &self.messages[(number + 1 - self.first) as usize..]
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Forgets messages older than `number`; the newest one stays. Whether that changes anything.
    pub(crate) fn can_forget(&self, number: u32) -> bool {
        number.min(self.newest()) > self.first
    }

    pub(crate) fn forget(&mut self, number: u32) {
        let number = number.min(self.newest());
        self.messages.drain(..(number - self.first) as usize);
        self.first = number;
    }
}
