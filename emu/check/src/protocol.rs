//! Words that carry the protocol. Strong accesses of one size never race, so what is wrong with them shows only in what
//! they are for: who still uses the old value, whose value ended a wait, and whether a packet was read at all.

use crate::{
    RegionKind, Rule,
    cell::Visitor,
    map::Map,
    registry::Stamp,
    warp::{Look, Warp},
    word::Word,
};

/// Users of one value that are remembered. Later ones are not.
const USERS: usize = 1 << 14;

/// How a packet is lost.
pub(crate) const UNREAD: &str = "nobody has read the packet";

/// What is wrong with a store (or read-modify-write) to a word: the rule and the other side. `saw`: it read what it
/// overwrites.
pub(crate) fn overwritten(
    kind: RegionKind,
    word: &Word,
    by: &Visitor<'_>,
    saw: bool,
) -> Vec<(Rule, Stamp, &'static str)> {
    let mut found = Vec::new();
    if !kind.is_signal() || kind == RegionKind::Poison {
        return found;
    }
    // Arrivals at a ticket are meant to come in any order.
    let ticket = kind == RegionKind::Ticket;
    let arrive = |old: &Stamp| ticket && old.how().is_atomic() && by.stamp.how().is_atomic();
    let unordered = |old: &Stamp| !(by.after(*old) || arrive(old));
    for user in word.users.iter().filter(|user| unordered(user)) {
        found.push((
            Rule::UnorderedOverwrite,
            *user,
            "it used the value that is overwritten",
        ));
    }
    if !saw && unordered(&word.write) {
        found.push((
            Rule::UnorderedOverwrite,
            word.write,
            "it stored the value that is overwritten",
        ));
    }
    if word.unread && kind == RegionKind::Packets {
        found.push((Rule::PacketLost, word.write, UNREAD));
    }
    found
}

/// A word was stored to: its users are history, but for arrivals at a ticket.
pub(crate) fn replace_users(kind: RegionKind, word: &mut Word, by: &Visitor<'_>) {
    if kind == RegionKind::Ticket && by.stamp.how().is_atomic() {
        uses(word, by);
    } else {
        word.users.clear();
    }
}

/// Someone uses a word's value: whoever overwrites it must come after.
fn uses(word: &mut Word, by: &Visitor<'_>) {
    // Whoever comes after this one comes after what is ordered before it.
    if word.users.last().is_some_and(|last| by.comes_with(*last)) {
        word.users.retain(|user| !by.comes_with(*user));
    }
    match word.users.len() < USERS {
        true => word.users.push(by.stamp),
        false => word.forgotten += 1,
    }
}

/// A strong load of a word by a lane of an operation with this number. Gives what is to be remembered of a wait that may
/// have ended with it.
pub(crate) fn looked(
    kind: RegionKind,
    address: u64,
    word: &mut Word,
    by: &Visitor<'_>,
    number: Option<u64>,
) -> Option<Look> {
    if matches!(kind, RegionKind::Epoch | RegionKind::Ticket) {
        uses(word, by);
        return None;
    }
    if !kind.is_awaited() {
        return None;
    }
    // What its own operation stored is what it waits for; looks at anything else use nothing.
    if number.is_some() && word.number == number {
        word.unread = false;
        uses(word, by);
    }
    // Who has no number may have stored for any operation. Of packets those without are scrubs.
    let stored_by = match kind {
        RegionKind::Packets => word.number,
        _ if word.write.is_none() => word.number,
        _ => word.number.or(number),
    };
    Some(Look {
        address,
        size: word.size,
        message: word.message,
        number: stored_by,
        write: word.write,
        stamp: by.stamp,
        fresh: true,
    })
}

/// Remembers a look, in place of the last one at the same word.
pub(crate) fn remember(looks: &mut Vec<Look>, mut look: Look) {
    match looks.iter_mut().find(|old| old.address == look.address) {
        Some(old) => {
            look.fresh = old.message != look.message;
            *old = look;
        }
        None => looks.push(look),
    }
}

/// What the waits of a lane that ends, of an operation without a number, have ended on is used, if it is still there. With a
/// number it was as soon as it was seen; without, only the end tells which look was the last.
pub(crate) fn settle(warp: &Warp, lane: usize, map: &mut Map) {
    for look in warp.looks(lane).iter().filter(|look| look.fresh) {
        let Some(tract) = map.tract_at(look.address) else {
            continue;
        };
        let offset = tract.offset(look.address);
        if let Some(word) = tract.shadow.known_word(offset, look.size)
            && (word.message, word.write) == (look.message, look.write)
        {
            uses(word, &Visitor::new(look.stamp, warp.view(lane)));
        }
    }
}

/// What is wrong with the waits of a lane that ends. (Not before: until then it may look again.)
pub(crate) fn confirm(warp: &mut Warp, lane: usize, number: Option<u64>) -> Vec<(Look, String)> {
    let looks = warp.take_looks(lane);
    let (Some(number), false) = (number, warp.poisoned) else {
        return Vec::new();
    };
    let stale = looks
        .into_iter()
        .filter(|look| look.fresh && look.number != Some(number));
    let words = |look: &Look| match look.number {
        Some(other) => {
            format!("an operation of epoch {number} took what that of epoch {other} had stored")
        }
        None if look.write.is_none() => {
            format!("an operation of epoch {number} took what was there before the run")
        }
        None => format!("an operation of epoch {number} took what is no operation's"),
    };
    stale
        .map(|look| {
            let words = words(&look);
            (look, words)
        })
        .collect()
}
