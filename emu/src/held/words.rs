//! What came of a held run, in words.

use std::fmt;

use super::report::{End, Poll, Reason, Run, Wait, Waiter, Writer};

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.end)?;
        if let Some(wrong) = &self.wrong {
            write!(f, "\n  wrong result: {wrong}")?;
        }
        self.findings
            .iter()
            .try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, waiters) = match self {
            End::Complete => return f.write_str("complete"),
            End::Fault(words) => return write!(f, "fault: {words}"),
            End::Deadlock(waiters) => (
                "deadlock: nobody can change memory any more, and these wait:",
                waiters,
            ),
            End::Unfinished(waiters) => {
                ("unfinished at the limit of instructions; at work:", waiters)
            }
        };
        f.write_str(first)?;
        waiters
            .iter()
            .try_for_each(|waiter| write!(f, "\n  {waiter}"))
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}, ")?;
        }
        write!(
            f,
            "operation {} of device {}, {}",
            self.operation,
            self.device,
            quoted(&self.what)
        )?;
        match &self.wait {
            Wait::Room { blocks } => write!(f, ": {blocks} CTAs have no room"),
            Wait::Operations(after) => {
                f.write_str(": behind")?;
                let mut after = after.iter();
                after.try_for_each(|(device, op)| write!(f, " operation {op} of device {device}"))
            }
            Wait::Warp {
                cta: [x, y, z],
                warp,
                lanes,
                line,
                source,
                reason,
                ..
            } => {
                write!(f, " CTA {x}")?;
                if (*y, *z) != (0, 0) {
                    write!(f, ",{y},{z}")?;
                }
                write!(f, " warp {warp} {}, PTX line {line}", Lanes(*lanes))?;
                if let Some(source) = source {
                    write!(f, ", {source}")?;
                }
                write!(f, ": {reason}")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Barrier { id, count: 0 } => write!(f, "at barrier {id} of the block"),
            Reason::Barrier { id, count } => write!(f, "at barrier {id} of {count} threads"),
            Reason::Lanes { mask } => write!(f, "waits for {} of the warp", Lanes(*mask)),
            Reason::Runs => f.write_str("runs"),
            Reason::Polls(polls) => {
                let mut polls = polls.iter();
                match polls.as_slice() {
                    [one] => one.fmt(f),
                    _ => polls.try_for_each(|poll| write!(f, "\n    {} {poll}", Lanes(poll.lanes))),
                }
            }
        }
    }
}

impl fmt::Display for Poll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "polls {} (PTX line {}): ", self.place, self.line)?;
        match (self.expected, self.awaited) {
            (Some(value), Some(is)) => write!(f, "expects {is}{value:#x}, ")?,
            (Some(value), None) => write!(f, "compares it with {value:#x}, ")?,
            (None, _) => {}
        }
        write!(f, "saw {:#x}", self.seen)?;
        if let Some(now) = self.now {
            write!(f, ", holds {now:#x}")?;
        }
        if self.place.kind.is_none() {
            return Ok(());
        }
        for writer in &self.writers {
            write!(f, "; {writer}")?;
        }
        if self.writers.is_empty() {
            f.write_str("; nothing is left that could write it")?;
        }
        match &self.last {
            Some(by) => write!(
                f,
                "; last written by operation {} of device {}, `{}` CTA {} warp {}, PTX line {}",
                by.operation, by.device, by.kernel, by.cta, by.warp, by.line
            ),
            None => f.write_str("; not written in this run"),
        }
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rank, self.device) {
            (Some(rank), _) => write!(f, "rank {rank} may write it")?,
            (None, Some(device)) => write!(f, "device {device} may write it")?,
            (None, None) => f.write_str("others may write it")?,
        }
        if self.operations.is_empty() {
            return f.write_str(", but has nothing left with an address that leads there");
        }
        f.write_str(", in")?;
        let mut comma = "";
        self.operations.iter().try_for_each(|(op, kernel)| {
            write!(f, "{comma} operation {op} `{kernel}`")?;
            comma = ",";
            Ok(())
        })
    }
}

/// What is a kernel's name, quoted; anything else is in words.
fn quoted(what: &str) -> String {
    match what.contains(' ') {
        true => what.to_owned(),
        false => format!("`{what}`"),
    }
}

/// Lanes by number.
struct Lanes(u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        f.write_str(if rest.count_ones() == 1 {
            "lane "
        } else {
            "lanes "
        })?;
        let mut comma = "";
        while rest != 0 {
            let first = rest.trailing_zeros();
            let count = (rest >> first).trailing_ones();
            match count {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", first + count - 1)?,
            }
            comma = ",";
            rest &= u32::MAX.checked_shl(first + count).unwrap_or(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Lanes;

    #[test]
    fn lanes_are_told_by_number() {
        let words = [1, 0x8000_0000, u32::MAX, 0b1011].map(|mask| Lanes(mask).to_string());
        assert_eq!(words, ["lane 0", "lane 31", "lanes 0-31", "lanes 0-1,3"]);
    }
}
